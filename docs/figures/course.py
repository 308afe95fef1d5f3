"""Draw the pictures of the course: ``python docs/figures/course.py``, run in the repository, renews course-*.png.

The lessons run; a picture is what the variable ``picture`` holds after the block above it.

    python docs/figures/course.py 3_trees      # one lesson
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from structpe.pictures import save

COURSE = Path(__file__).parents[1] / "course"
PYTHON = re.compile(
    r"^```python\n(.*?)^```$(?:\n\n```text\n.*?^```$)?(?:\n\n!\[[^\]]*\]\(([^)]+\.png)\))?", re.MULTILINE | re.DOTALL
)


def main() -> None:
    """All lessons, or those that are named."""
    for page in sorted(COURSE.glob("*.md")):
        if page.stem in sys.argv[1:] or not sys.argv[1:]:
            draw(page)


def draw(page: Path) -> None:
    """Run a lesson up to its last picture, and save each."""
    blocks = PYTHON.findall(page.read_text(encoding="utf-8"))
    last = max((number for number, (_, picture) in enumerate(blocks) if picture), default=-1)
    session: dict[str, Any] = {"__name__": page.stem}
    for code, picture in blocks[: last + 1]:
        exec(code, session)
        if picture:
            save(session["picture"], page.parent / picture, dots=100)


if __name__ == "__main__":
    main()
