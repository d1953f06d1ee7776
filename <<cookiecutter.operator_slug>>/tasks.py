"""Tasks of this repository; `invoke --list` shows them all. Write your own, with `@task` of invoke, above `ns`."""

import sys
from pathlib import Path

from invoke.collection import Collection

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "vendor"))

from bonny_dev.tasks import *  # noqa: E402, F403
from bonny_dev.tasks import check_command_line, sandbox  # noqa: E402

ns = Collection.from_module(sys.modules[__name__])
ns.add_collection(Collection.from_module(sandbox))
ns.configure({"root": str(ROOT)})
check_command_line(ns)  # the last line: it has to know every task
