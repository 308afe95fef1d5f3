"""
Near places have similar sinusoids, and no similar rows of an untrained table
=============================================================================

Cosines between the vectors that position models add to the input, for 48 words of a sentence, as in figure 5 of Chen
et al. 2021. The similarity of sinusoids decays with the offset, in either order of their columns; learned tables show
nothing before they are trained.
"""

import structpe
from structpe.pictures import setting, similarity

plain = setting.Setting()
sentence = structpe.path([f"w{i}" for i in range(48)])
matrices = {}
for name in ("sinusoidal", "sinusoidal-concatenated", "floater-input", "learned"):
    matrices[name] = similarity.cosines(similarity.vectors(setting.model_of(name, plain), sentence))
picture = similarity.draw(matrices, "cosines between positions, before training")
picture.set_label(
    "Four maps of 48 by 48 places with a histogram below each: those of sinusoids have a bright diagonal that fades "
    "to both sides, that of a learned table has the diagonal only."
)
