"""
In caffeine, walks return soonest to atoms that hold a methyl or an oxygen
==========================================================================

How probable it is that a random walk along bonds is back at its atom after 1, 2, 3 ... steps. A methyl and an oxygen
have one bond, so a walk that goes there must come back at once. Rows of the map are atoms, with the numbers in the
drawing. After five steps a walk may also have gone round the ring of five.
"""

import structpe
from structpe.datasets import sample
from structpe.encodings import RandomWalk

items = structpe.read(sample("molecules_sample/molecules.csv"))
caffeine = items.structures[48]
walks = RandomWalk(steps=12)
twice = walks.one(caffeine).values[:, 1]
print("soonest back:", *sorted(twice.argsort()[-5:].tolist()))

picture = structpe.show(caffeine, [walks])
picture.set_label(
    "The formula of caffeine with numbered atoms, and a map with a row for each atom and a column for each number of "
    "steps: at step 2, the five atoms that hold a methyl or an oxygen are brightest."
)
