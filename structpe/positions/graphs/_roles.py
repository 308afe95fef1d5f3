"""Tables of the roles of a data set."""

from __future__ import annotations

from structpe.encodings.base import Encoding
from structpe.encodings.weisfeiler_lehman import WeisfeilerLehman
from structpe.errors import PositionError

__all__ = ["check_rows"]


def check_rows(model: str, encoding: Encoding, rows: int) -> None:
    """Raise an error unless every role has a row; the numbers of other encodings are known only in a batch.

    Raises:
        PositionError: there are more roles than rows.
    """
    if isinstance(encoding, WeisfeilerLehman) and encoding.size > rows:
        raise PositionError(
            f"position model {model!r} has {rows} rows for roles, the encoding has {encoding.size} values; build it "
            f"with more rows, or keep the most frequent roles: WeisfeilerLehman(most={rows - 1}).fit(structures)"
        )
