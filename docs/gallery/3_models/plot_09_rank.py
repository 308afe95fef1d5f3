"""
A bias can say more than a vector at the input
==============================================

Theorem 1 of Chen et al. (2021): scores that come from positions at the input have at most the rank of a head's width,
here 16. Positions in each head add their own rank, and a bias per offset has nearly that of the text's length. The
lines are the singular values of all scores among 64 words.
"""

import structpe
from structpe.pictures import Setting, rank

small = Setting(structpe.Dims(48, heads=3, layers=1), places=64)
values = {}
for name in ("learned", "diet-abs", "t5"):
    position = {"name": name, "rank": 12} if name == "diet-abs" else name
    values[name] = rank.singular_values(rank.scores(position, small)[:1])[0]
    print(name, rank.ranks(position, small).whole)

picture = rank.draw(values, title="singular values of scores, before training")
picture.set_label(
    "Three curves of singular values: that of a learned table at the input drops to nothing after 16, that of DIET-"
    "ABS after 28, that of T5's bias goes on to the end."
)
