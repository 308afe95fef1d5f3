"""
Some biases fall in a line, some by a logarithm
===============================================

What four position models subtract from the score of a far word, by one head each, before training, as a share of what
they subtract at 96 words. ALiBi's line keeps falling. A logarithm has done half of its fall after a few words, and
then treats far words nearly alike.
"""

import matplotlib.pyplot as plt

import structpe

far = 96
text = structpe.path(["word"] * (far + 1))
dims = structpe.Dims(width=64, heads=8, layers=1)
figure, axis = plt.subplots(figsize=(7, 3.6), layout="constrained")
figure.set_label(
    "Four curves of the bias by the number of words to the left: those of ALiBi fall in a line, those of KERPLE and "
    "Sandwich fall fast at first and then slowly."
)
for name, head in (("alibi", 2), ("kerple-power", 0), ("kerple-log", 0), ("sandwich", 0)):
    model = structpe.build(name, dims)
    terms = model.terms(model.prepare(structpe.encode([text], model.encodings)), structpe.Site(layer=0))
    bias = terms.bias[0].dense()[0, -1, :, head].detach().flip(0)  # of the last word: from itself to the first
    axis.plot((bias - bias[0]) / (bias[0] - bias[-1]), label=name)
axis.set(xlabel="words to the left", ylabel="bias, share of that at 96 words")
axis.legend()
