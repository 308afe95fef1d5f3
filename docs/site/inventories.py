"""The lists of names in the documentation of other libraries, so that ``Tensor`` in the API leads to PyTorch's page.

They are fetched once into a folder that git ignores. Without a network there are no such links, and no warning.
"""

from __future__ import annotations

from pathlib import Path
from urllib.request import urlopen

__all__ = ["SITES", "known"]

SITES = {
    "torch": "https://docs.pytorch.org/docs/stable/",
    "numpy": "https://numpy.org/doc/stable/",
    "torch_geometric": "https://pytorch-geometric.readthedocs.io/en/latest/",
}
SECONDS = 5
HEAD = b"# Sphinx inventory version"


def known(folder: Path, sites: dict[str, str] = SITES) -> dict[str, tuple[str, str]]:
    """The sites whose lists are in the folder or can be fetched, for Sphinx: by name, the address and the file."""
    files = {name: folder / f"{name}.inv" for name in sites}
    return {
        name: (sites[name], str(file)) for name, file in files.items() if file.is_file() or fetched(sites[name], file)
    }


def fetched(site: str, file: Path) -> bool:
    """Whether the list of a site could be fetched."""
    try:
        with urlopen(f"{site}objects.inv", timeout=SECONDS) as answer:
            data: bytes = answer.read(20_000_000)
    except (OSError, ValueError):
        return False
    if not data.startswith(HEAD):  # a page of a proxy
        return False
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(data)
    return True
