"""
Positions take most of the error where all nodes look alike, and less where words tell them apart
=================================================================================================

Each line compares two models that differ in positions only, over several seeds: the share of the error that goes, and
the interval that holds 95 % of it by Student's t. Grey intervals hold 0, so they show no difference. The page *Which
position for my task* has the numbers.
"""

import runpy
from pathlib import Path

import structpe

root = Path(structpe.__file__).parents[1]
figure = runpy.run_path(str(root / "experiments" / "choose.py"))["draw"]()
figure.set_label(
    "A list of comparisons with a dot and an interval each: on CSL and on who did what nearly all of the error goes, on"
    " ZINC half, on most others a few percent or nothing, and on minesweeper it grows."
)
