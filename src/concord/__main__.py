"""``python -m concord``: the command ``concord``, where its script is not on the path."""

import sys
from importlib import import_module

# The command is above the library, which must not import it: by its name alone.
sys.exit(import_module("concord_cli.__main__").main())
