"""Zip files of others, looked at before anything in them is unpacked: they may hold far more than their size says."""

from __future__ import annotations

import zipfile

__all__ = ["RATIO", "SLACK", "check_methods", "check_zip"]

RATIO, SLACK = 200, 1 << 28
"""A file may unpack to as many times its own size, and this much more in any case."""
KNOWN = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
"""Ways of packing that unpack piece by piece; the others unpack a whole block of any size at once."""


def check_zip(archive: zipfile.ZipFile, size: int) -> None:
    """What it says of itself is in proportion.

    Args:
        archive: the file.
        size: of it, in bytes.

    Raises:
        ValueError: it holds too much, or packs in a way that cannot be watched.
    """
    check_methods(archive)
    unpacked = sum(info.file_size for info in archive.infolist())
    if unpacked > size * RATIO + SLACK:
        raise ValueError(f"it grows from {size} to {unpacked} bytes")


def check_methods(archive: zipfile.ZipFile) -> None:
    """It can be watched while it is unpacked.

    Raises:
        ValueError: it packs in another way.
    """
    for info in archive.infolist():
        if info.compress_type not in KNOWN:
            raise ValueError(f"{info.filename!r} in it is packed by method {info.compress_type}, 0 or 8 are allowed")
