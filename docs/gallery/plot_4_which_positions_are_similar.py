"""
Which positions are similar
===========================

Cosines between the vectors that position models add to the input, for 48 words of a sentence, as in figure 5 of Chen et
al. 2021. The similarity of sinusoids decays with the offset, in either order of their columns; learned tables show
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
