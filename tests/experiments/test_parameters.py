"""Table 6 of Chen et al. 2021: the parameters of BERT-base, to the printed digit."""

from __future__ import annotations

import pytest

from tests.experiments.script import script

PARAMETERS = script("parameters/run.py")

# As printed: model, parameters in English and multilingual.
PRINTED = """
Devlin et al. (2018)       110.1M  178.9M
Shaw et al. (2018)         112.9M  181.7M
DIET-REL                   109.9M  178.7M
DIET-REL (share)           109.7M  178.5M
DIET-ABS (d_p=128)         128.6M  197.4M
DIET-ABS (d_p=128, share)  111.3M  180.1M
"""


def test_every_count_is_the_printed_one() -> None:
    found = [[model, cells[0], cells[2]] for model, cells in PARAMETERS.table_6()]
    assert found == [[part.strip() for part in line.rsplit(maxsplit=2)] for line in PRINTED.strip().splitlines()]


def test_growth_is_the_printed_one_but_where_the_study_does_not_agree_with_itself() -> None:
    """+0.0% stands where parameters become fewer; three others do not follow from the counts beside them."""
    differing = {
        (row.model, printed, cell)
        for row, (_, cells) in zip(PARAMETERS.TABLE_6, PARAMETERS.table_6(), strict=True)
        for printed, cell in ((row.english[1], cells[1]), (row.multilingual[1], cells[3]))
        if printed != cell
    }
    assert differing == {
        ("DIET-REL", "+0.0%", "-0.2%"),
        ("DIET-REL", "+0.0%", "-0.1%"),
        ("DIET-REL (share)", "+0.0%", "-0.3%"),
        ("DIET-REL (share)", "+0.0%", "-0.2%"),
        ("Shaw et al. (2018)", "+1.7%", "+1.5%"),
        ("DIET-ABS (d_p=128)", "+10.0%", "+10.3%"),
        ("DIET-ABS (d_p=128, share)", "+0.6%", "+0.7%"),
    }


@pytest.mark.parametrize("vocabulary", [PARAMETERS.ENGLISH, PARAMETERS.MULTILINGUAL])
def test_the_counts_by_hand(vocabulary: int) -> None:
    """BERT's own count, and what each model puts in place of its 512 positions and 2 segments."""
    d, f, n, h, l, r = 768, 3072, 512, 12, 12, 128  # noqa: E741
    layer = 4 * (d * d + d) + (d * f + f) + (f * d + d) + 2 * 2 * d
    bert = vocabulary * d + n * d + 2 * d + 2 * d + l * layer + (d * d + d) + (d * d + d + 2 * d) + vocabulary
    removed, segments = n * d + 2 * d, 2 * 2 * h * l
    expected = [
        bert,
        bert - n * d + 2 * (2 * 1024 - 1) * 64 * l,
        bert - removed + l * h * (2 * n - 1) + segments,
        bert - removed + h * (2 * n - 1) + segments // l,
        bert - removed + 2 * l * h * n * r + segments,
        bert - removed + 2 * h * n * r + segments // l,
    ]
    assert [PARAMETERS.count(vocabulary, row.position) for row in PARAMETERS.TABLE_6] == expected
    if vocabulary == 30_522:
        assert bert == 110_104_890
