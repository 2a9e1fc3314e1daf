"""``python -m volumehost``: the same program as the console script."""

import sys

from volumehost.cli import main

if __name__ == "__main__":
    sys.exit(main())
