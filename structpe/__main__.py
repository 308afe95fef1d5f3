"""``python -m structpe``: the same as the command ``structpe``."""

import sys

from structpe.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
