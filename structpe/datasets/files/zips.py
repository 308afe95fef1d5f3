"""Checks of untrusted zip files before they are unpacked."""

from __future__ import annotations

import zipfile

__all__ = ["RATIO", "SLACK", "check_methods", "check_zip"]

RATIO, SLACK = 200, 1 << 28
"""A file may grow to RATIO times its size plus SLACK bytes."""
KNOWN = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
"""Methods that unpack piece by piece; the others unpack a block of any size at once."""


def check_zip(archive: zipfile.ZipFile, size: int) -> None:
    """Check the size and the methods of an archive.

    Args:
        archive: the archive.
        size: its size in bytes.

    Raises:
        ValueError: it grows too much, or uses a method that cannot be limited.
    """
    check_methods(archive)
    unpacked = sum(info.file_size for info in archive.infolist())
    if unpacked > size * RATIO + SLACK:
        raise ValueError(f"it grows from {size} to {unpacked} bytes")


def check_methods(archive: zipfile.ZipFile) -> None:
    """Check that an archive only uses methods that unpack piece by piece.

    Raises:
        ValueError: it uses another method.
    """
    for info in archive.infolist():
        if info.compress_type not in KNOWN:
            raise ValueError(f"{info.filename!r} in it is packed by method {info.compress_type}, 0 or 8 are allowed")
