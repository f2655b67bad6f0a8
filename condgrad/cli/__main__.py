"""``python -m condgrad.cli`` is ``condgrad``."""

import sys

from condgrad.cli.program import main

if __name__ == "__main__":
    sys.exit(main())
