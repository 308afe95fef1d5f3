"""Take the picture of the app in docs/pictures.md. ``python docs/figures/app.py`` renews pictures-app.png.

It needs the extra ``app``, Playwright, and a Chromium, which ``CHROMIUM`` names (/usr/bin/chromium by default).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

FOLDER = Path(__file__).parent
COMMAND = [sys.executable, "-m", "structpe", "app", "--no-browser"]


def main() -> None:
    """Start the app, open it, and write its first view."""
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE, text=True) as app, sync_playwright() as started:
        try:
            assert app.stdout is not None
            address = app.stdout.readline().split()[-1]
            chromium = os.environ.get("CHROMIUM", "/usr/bin/chromium")
            browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1440, "height": 1180})
            page.goto(address)
            page.screenshot(path=FOLDER / "pictures-app.png")
            browser.close()
        finally:
            app.terminate()


if __name__ == "__main__":
    main()
