"""The former name of `bonny_dev.tasks`, for one release.

Where vendor/bonny_dev is missing, which is so after an update by a former release, `invoke --list` works,
`invoke update-runtime` adds it, and every other task says so.
"""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Final, NoReturn

from invoke.context import Context
from invoke.exceptions import Exit
from invoke.tasks import Task, task

from ._moved import MISSING, forward

ABBREVIATIONS: Final = {"gh": "https://github.com", "gl": "https://gitlab.com", "bb": "https://bitbucket.org"}
MOVED: Final = {
    "examine": "doctor",
    "gen_controller": "gen-controller",
    "gen_reconciler": "gen-reconciler",
    "gen_scheduler": "gen-scheduler",
    "gen_task": "gen-task",
    "image": "image",
    "install": "install",
    "lint": "lint",
    "lock": "lock",
    "manifest": "manifest",
    "pin_tags": "pin",
    "run_locally": "run-local",
    "run_tests": "test",
    "uninstall": "uninstall",
    "write_dashboards": "dashboards",
}
"""The names of tasks by the names of their functions."""


def _refusing(name: str) -> Task[Callable[[Context], NoReturn]]:
    """A task that refuses to run."""

    def refuse(c: Context) -> NoReturn:
        """Needs vendor/bonny_dev, which `invoke update-runtime` adds."""
        raise Exit(MISSING, code=2)

    return Task(refuse, name=name)


@task(name="update-runtime", auto_shortflags=False)
def update_vendored(c: Context, ref: str = "", from_: str = "", force: bool = False) -> None:
    """Add vendor/bonny_dev, replace vendor/bonny, and edit tasks.py, pyproject.toml and tests for both."""
    with tempfile.TemporaryDirectory(prefix="bonny-update-") as temporary:
        origin = from_ or _recorded_origin(Path(c.root))
        folder = Path(origin).expanduser().absolute()
        if ref or not folder.is_dir():
            _clone(str(folder) if folder.is_dir() else origin, temporary)
            folder = Path(temporary)
        if not (folder / "runtime" / "bonny_dev").is_dir():
            raise Exit(
                f"{origin} has no runtime/bonny_dev: name the folder or URL of a newer template by --from", code=2
            )
        # Both packages from there, which does the work: its bonny_dev may need more than this bonny has.
        for name in [name for name in sys.modules if name.partition(".")[0] == "bonny"]:
            del sys.modules[name]
        sys.path.insert(0, str(folder / "runtime"))
        importlib.import_module("bonny_dev.tasks").update_vendored(c, ref=ref, from_=from_, force=force)


def _recorded_origin(root: Path) -> str:
    try:
        if (root / ".cruft.json").is_file():
            return str(json.loads((root / ".cruft.json").read_text(encoding="utf-8"))["template"])
        return str(tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["bonny"]["template"])
    except (OSError, ValueError, KeyError, TypeError):
        raise Exit("the template's address is not recorded: name its folder or URL by --from", code=2) from None


def _clone(origin: str, folder: str) -> None:
    """Fetch the newest `runtime` of the template; which version is installed is decided by that."""
    name, _, rest = origin.partition(":")
    url = f"{ABBREVIATIONS[name]}/{rest}.git" if name in ABBREVIATIONS else origin
    git = ("git", "-c", "core.autocrlf=false", "-C", folder)
    for command in (
        ("clone", "--quiet", "--no-checkout", "--", url, "."),
        ("checkout", "--quiet", "HEAD", "--", "runtime"),
    ):
        try:
            done = subprocess.run([*git, *command], capture_output=True, text=True, check=False)
        except FileNotFoundError as error:
            raise Exit(
                "git is not installed here: install it, or name a folder by --from and no --ref", code=2
            ) from error
        if done.returncode:
            why = re.sub(r"(?<=://)[^/\s]*@", "", done.stderr.strip())  # a URL may hold a token
            raise Exit(f"git {command[0]} failed ({why}): name the template's folder or URL by --from", code=2)


if find_spec("bonny_dev"):
    forward(__name__)
else:
    # Before invoke looks at the command, whose options it does not know.
    if not set(MOVED.values()).isdisjoint(sys.argv):
        raise Exit(MISSING, code=2)
    tasks = {variable: _refusing(name) for variable, name in MOVED.items()}
    sandbox = ModuleType("sandbox")
    vars(sandbox).update({name: _refusing(name) for name in ("fetch", "start", "stop")})
    globals().update(tasks)
    __all__ = [*tasks, "sandbox", "update_vendored"]  # noqa: PLE0604
