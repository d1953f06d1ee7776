"""`python -m << cookiecutter.__package >>` runs the operator; `help` lists its settings."""

import sys

from bonny.main import run

if __name__ == "__main__":
    sys.exit(run("<< cookiecutter.__package >>.operator"))
