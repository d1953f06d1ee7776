"""`python -m << cookiecutter.__package >>` runs the operator; `help` lists its settings."""

import sys

from bonny.main import main

from .operator import operator

if __name__ == "__main__":
    sys.exit(main(operator))
