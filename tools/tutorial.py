"""Tutorial: takes docs/tutorial.md apart, and measures how long a newcomer waits for the first reconciled object.

    python -m tools.tutorial          by uv, with its cache of this user
    python -m tools.tutorial --cold   by pip, with no cache

The page's own commands are run in a home and a folder of their own, up to the line that says `applied`. The programs
of the sandbox are taken from this user's cache either way.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from .terminal import CTRL_C, Terminal

__all__ = ["PAGE", "RUNS_ON", "Command", "Edit", "Shown", "pattern", "steps"]

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "tutorial.md"
# The command that goes on in the first terminal.
RUNS_ON: Final = "invoke run-local"
FIRST_OBJECT: Final = "applied   WidgetController"
FIRST_SECONDS: Final = 600.0
BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What differs each time: times of day, durations, ages, folders, ports; and the blanks that line up what follows.
DIFFERS: Final = re.compile(
    r"\d\d:\d\d:\d\d|\d+(?:\.\d+)?(?= ms\b)|(?<==)\d[\d.]*|\b\d+s\b|(?<=sandbox-)[0-9a-f]+|\(x\d+ over \d+s\)"
)


class Command(NamedTuple):
    """A line to type, and what is printed then (nothing: it is not shown)."""

    line: str
    output: str


class Edit(NamedTuple):
    """A file that is written anew, or one class or function of it."""

    path: str
    text: str

    def carry_out(self, root: Path) -> None:
        path = root / self.path
        new = ast.parse(self.text).body if path.suffix == ".py" else []
        if len(new) == 1 and isinstance(new[0], ast.ClassDef):
            before = path.read_text("utf-8")
            old = next(node for node in ast.parse(before).body if getattr(node, "name", "") == new[0].name)
            lines = before.splitlines(keepends=True)
            lines[old.lineno - 1 : old.end_lineno] = [self.text]
            path.write_text("".join(lines), "utf-8")
        else:
            path.write_text(self.text, "utf-8")


class Shown(NamedTuple):
    """What the first terminal shows by then."""

    output: str


def steps(page: str) -> Iterator[Command | Edit | Shown]:
    """What the page tells its reader to do and to see, in order."""
    for block in BLOCK.finditer(page):
        language, text = block.groups()
        if language == "python":
            (*_, path) = re.findall(r"`([\w./]+\.py)`", page[: block.start()])
            yield Edit(path, text)
        elif language == "yaml":
            (*_, path) = re.findall(r"`([\w./-]+\.yaml)`", page[: block.start()])
            yield Edit(path, text)
        elif language == "text":
            yield Shown(text)
        else:
            for entry in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                line, _, output = entry.partition("\n")
                yield Command(line, output)


def pattern(output: str) -> re.Pattern[str]:
    """A pattern for `output`: `...` is anything, as are times, durations and the like; blanks may be more or fewer."""
    parts = (re.split(r"\s+", part.strip()) for part in DIFFERS.sub("...", output).split("..."))
    return re.compile(r".*?".join(r"\s+".join(map(re.escape, words)) for words in parts), re.DOTALL)


def by_uv(line: str) -> str:
    """The command that does the same in seconds."""
    uv = shlex.quote(str(Path(sys.executable).with_name("uv")))
    line = re.sub(r"^pip install", f"{uv} pip install --quiet --python $(command -v python)", line)
    return re.sub(r"^python3 -m venv", f"{uv} venv --quiet --seed", line)


def main() -> int:
    arguments = argparse.ArgumentParser(description="How long until the first reconciled object?")
    arguments.add_argument("--cold", action="store_true", help="by pip, with empty caches")
    cold = arguments.parse_args().cold
    with tempfile.TemporaryDirectory(prefix="bonny-tutorial-") as folder:
        home = Path(folder)
        programs = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bonny"
        shutil.copytree(programs, home / "cache" / "bonny")
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("BONNY_", "KUBE", "PYTHON", "VIRTUAL_ENV"))
        }
        environment |= {"PATH": f"{home}/.venv/bin:{environment['PATH']}", "XDG_CACHE_HOME": f"{home}/cache"}
        environment |= {"HOME": folder, "UV_CACHE_DIR": str(Path.home() / ".cache" / "uv")}
        at, began = home, time.monotonic()
        # A newcomer may have no environment for cookiecutter yet; it is part of the wait.
        subprocess.run([sys.executable, "-m", "venv", str(home / ".venv")], check=True)
        for step in steps(PAGE.read_text("utf-8")):
            assert isinstance(step, Command)
            if step.line.startswith(RUNS_ON):
                with Terminal(["sh", "-c", step.line], cwd=at, env=environment) as terminal:
                    terminal.wait_for(FIRST_OBJECT, within_seconds=FIRST_SECONDS)
                    print(f"{time.monotonic() - began:6.1f} s: the first object is reconciled")
                    terminal.press(CTRL_C)
                    return terminal.ended()
            line = step.line.replace("gh:org/bonny-template", f"--no-input {shlex.quote(str(ROOT))}")
            if line.startswith("cd "):
                at = at / line.removeprefix("cd ")
                continue
            if ".venv/bin/activate" in line:
                line = line.partition(" && ")[0]
                environment["PATH"] = f"{at}/.venv/bin:{environment['PATH']}"
            line = line if cold else by_uv(line)
            subprocess.run(["sh", "-c", line], cwd=at, env=environment, check=True, stdout=subprocess.DEVNULL)
            print(f"{time.monotonic() - began:6.1f} s: {step.line}", flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
