"""
Beyond the length of training, ALiBi goes on where rotary positions fail
========================================================================

Four small language models learn texts of 32 letters in which the last two letters decide which may come next (Press
et al. 2022 ask the same of real text). Then they read texts of up to 512 letters. Rotary positions are best at 32,
and worst at 512. The dashed line is what a perfect model would have.
"""

import matplotlib.pyplot as plt
import torch

import structpe
from structpe.nn import LanguageModel

LETTERS = 6
generator = torch.Generator().manual_seed(0)
chances = torch.distributions.Dirichlet(torch.full((LETTERS,), 0.2))
torch.manual_seed(0)
table = chances.sample((LETTERS, LETTERS))  # of the next letter, after each two


def texts(count, length):
    """Ids (count, length + 1); the last two letters decide which may come next."""
    drawn = torch.randint(LETTERS, (count, length + 1), generator=generator)
    for place in range(2, length + 1):
        drawn[:, place] = torch.multinomial(table[drawn[:, place - 2], drawn[:, place - 1]], 1, generator=generator)[
            :, 0
        ]
    return drawn


def loss(model, drawn, skip=1):
    said = model(drawn[:, :-1])[0][:, skip:]
    return torch.nn.functional.nll_loss(said.flatten(0, 1), drawn[:, 1 + skip :].flatten())


shown, longest = texts(16 * 150, 32), texts(4, 512)
lengths = (16, 32, 64, 128, 256, 512)
figure, axis = plt.subplots(figsize=(7, 3.6), layout="constrained")
figure.set_label(
    "Lines of the loss by length of the text. At 32 letters, the length of training, that of rotary positions is "
    "lowest; beyond it all rise, and that of ALiBi stays."
)
for name in ("sinusoidal", "rotary", "t5", "alibi-causal"):
    torch.manual_seed(0)
    config = structpe.StackConfig.transformer(structpe.Dims(width=32, heads=4, layers=2), feedforward=32)
    model = LanguageModel(config, LETTERS, name)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    for step in range(150):
        optimizer.zero_grad()
        loss(model, shown[16 * step :][:16]).backward()
        optimizer.step()
    with torch.no_grad():
        axis.plot(lengths, [loss(model.eval(), longest[:, : length + 1]) for length in lengths], "o-", label=name)
best = -table[longest[:, :-2], longest[:, 1:-1], longest[:, 2:]].log().mean()
axis.axhline(best, color="#6b7785", linestyle="--")
axis.axvline(32, color="#c9d0d8", zorder=0)
axis.set(
    xlabel="letters in the text (trained on 32)",
    ylabel="loss per letter",
    xscale="log",
    xticks=lengths,
    xticklabels=lengths,
)
axis.minorticks_off()
axis.legend()
