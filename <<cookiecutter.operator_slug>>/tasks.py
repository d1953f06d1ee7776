"""Tasks of this repository; `invoke --list` shows them all. Write your own, with `@task` of invoke, above `ns`."""

import sys
from importlib.util import find_spec
from pathlib import Path

from invoke.collection import Collection
from invoke.exceptions import Exit

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "vendor"))

if not find_spec("bonny_dev"):
    advice = "run `uv sync && . .venv/bin/activate`, or pip install -e '.[dev]'"
    raise Exit(f"the developer tools are not installed here: {advice}", code=2)

from bonny_dev.tasks import *  # noqa: E402, F403
from bonny_dev.tasks import check_command_line, sandbox  # noqa: E402

ns = Collection.from_module(sys.modules[__name__])
ns.add_collection(Collection.from_module(sandbox))
ns.configure({"root": str(ROOT)})
check_command_line(ns)  # the last line: it has to know every task
