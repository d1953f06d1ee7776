"""`python -m << cookiecutter.__package >>` runs the operator; `version` and `--help` say more."""

import sys

from bonny.main import main

from .operator import operator

if __name__ == "__main__":
    sys.exit(main(operator))
