"""Lines: measures what a rendered repository carries below vendor/, against its budgets (docs/decisions/0089).

python tools/lines.py        prints a table, and one line a room; exit code 1 when a budget is exceeded
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from bonny_dev import lines, wheel

TEMPLATE: Final = Path(__file__).resolve().parent.parent
# Of a repository rendered with the default answers. A raise is a commit of its own, whose decision record says what was
# given up for it. The goals: 10,500 lines, 130 files, 0.75 MB, and 0.45 MB for the wheel of the developer tools.
BUDGETS: Final = {"code lines": 10_099, "files": 123, "bytes": 750_000, "bytes of the wheel": 928_000}
# From a watch line to the user's handler and back to the API: the modules that decide, so that they can be read in one
# sitting. Not counted: the transport, pages of lists, the reading of a spec, Kubernetes events, logs and telemetry,
# which each reconcile passes, too; credentials, proxies, leader election and metrics.
PATH: Final = ("core", "calling.py", "controller.py", "kinds.py", "resource.py", "errors.py", "axn.py",
               "pipeline.py", "steps", "engine", "client/api.py", "client/request.py", "client/errors.py",
               "client/metering.py", "telemetry/tracing.py")  # fmt: skip
ASIDE: Final = ("core/lease.py", "core/meters.py", "core/series.py")


def render(folder: Path) -> Path:
    """vendor/ of a repository that the template renders with its default answers, below the empty `folder`."""
    settings = folder / "settings.yaml"
    settings.write_text(f"replay_dir: {folder}/replay\ncookiecutters_dir: {folder}/templates\n", encoding="utf-8")
    command = ["cookiecutter", "--no-input", "--config-file", str(settings), "-o", str(folder / "out"), str(TEMPLATE)]
    subprocess.run([sys.executable, "-m", *command], check=True, capture_output=True, text=True)
    (project,) = (folder / "out").iterdir()
    return project / "vendor"


# Most files are in each of some thirty selections.
code_lines = cache(lines.code_lines)


def sum_of(files: Mapping[str, bytes]) -> int:
    """The code lines of all modules among `files`."""
    return sum(code_lines(data.decode()) for name, data in files.items() if name.endswith(".py"))


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="bonny-lines-") as folder:
        vendor = render(Path(folder))
        files = sorted(path for path in vendor.rglob("*") if path.is_file())
        counts = {
            path.relative_to(vendor): code_lines(path.read_text(encoding="utf-8"))
            for path in files
            if path.suffix == ".py"
        }
        measured = {
            "code lines": sum(counts.values()),
            "files": len(files),
            "bytes": sum(path.stat().st_size for path in files if path.suffix != ".whl"),
            "bytes of the wheel": sum(path.stat().st_size for path in files if path.suffix == ".whl"),
        }
    print(f"{'below vendor/, default set':28}{'now':>11}{'budget':>11}")
    for name, budget in BUDGETS.items():
        over = "  over budget" if measured[name] > budget else ""
        print(f"{name:28}{measured[name]:11,}{budget:11,}{over}")

    def lines_of(*rooms: Path) -> int:
        return sum(n for path, n in counts.items() if any(path.is_relative_to(room) for room in rooms))

    runtime = Path("bonny")
    hot = lines_of(*(runtime / each for each in PATH)) - lines_of(*(runtime / each for each in ASIDE))
    print(f"{'code lines of the hot path':28}{hot:11,}")
    for room in sorted({Path(*path.parts[:2]) for path in counts}):
        print(f"  {room.as_posix():26}{lines_of(room):11,}")
    runtime_files = wheel.sources()
    none = wheel.selected(runtime_files, ())
    print(f"{'code lines without extras':28}{sum_of(none):11,}")
    table = wheel.listed_extras(runtime_files)
    for name, each in table.items():
        if each.get("folders"):
            beside = wheel.selected(runtime_files, wheel.below(table, name))
            more = sum_of(wheel.selected(runtime_files, (*wheel.below(table, name), name))) - sum_of(beside)
            print(f"  {f'extra {name}':26}{more:11,}")
    return int(any(measured[name] > budget for name, budget in BUDGETS.items()))


if __name__ == "__main__":
    sys.exit(main())
