"""Baking: renders the template into a folder, and fills an environment for what was rendered.

You need it in every test about the template. Nothing of the person's own cookiecutter settings takes part.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import traceback
import warnings
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from bonny_dev.wheel import contents, digest

TEMPLATE = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Baked:
    """What cookiecutter did: its exit code, what it said, and the project, which exists when the code is 0."""

    code: int
    said: str
    project: Path


def bake(folder: Path, answers: dict[str, str] | None = None, *, template: Path = TEMPLATE) -> Baked:
    """Render `template` with `answers`, and defaults for the others, into the new folder `folder`/out."""
    settings = folder / "settings"
    settings.mkdir(parents=True)
    config = settings / "cookiecutter.yaml"
    config.write_text(f"replay_dir: {settings}/replay\ncookiecutters_dir: {settings}/templates\n", encoding="utf-8")
    out = folder / "out"
    out.mkdir()
    command = ["--no-input", "--config-file", str(config), "--output-dir", str(out), str(template)]
    code, said = cut([*command, *(f"{name}={text}" for name, text in (answers or {}).items())], settings)
    made = sorted(out.iterdir())
    return Baked(code=code, said=said, project=made[0] if made else out / "nothing")


def checksums(folder: Path) -> dict[str, str]:
    """SHA-256 of every file, by its path within `folder`, without caches and the records of a delivery."""
    return {name: digest(data) for name, data in contents(folder).items()}


def cut(arguments: list[str], scratch: Path) -> tuple[int, str]:
    """Run cookiecutter's command line in this process, which saves the second that its imports take.

    Returns its exit code and all that it and its hooks said. The hooks that it rendered are left behind in `scratch`.
    """
    from cookiecutter.cli import main  # noqa: PLC0415  only where something is rendered

    log = scratch / "said"
    before = os.dup(1), os.dup(2)
    with log.open("w", encoding="utf-8", errors="backslashreplace", buffering=1) as stream, ExitStack() as stack:
        stack.enter_context(redirect_stdout(stream))
        stack.enter_context(redirect_stderr(stream))
        stack.enter_context(warnings.catch_warnings(action="ignore"))
        tempfile.tempdir = str(scratch)
        for number in (1, 2):  # hooks are processes: they write to these
            os.dup2(stream.fileno(), number)
        try:
            main.main(arguments)
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        except Exception:  # noqa: BLE001  as the interpreter would end with it
            traceback.print_exc()
            code = 1
        finally:
            tempfile.tempdir = None
            for number, kept in enumerate(before, start=1):
                os.dup2(kept, number)
                os.close(kept)
    return code, log.read_text(encoding="utf-8")


def rendered_files(project: Path) -> list[Path]:
    """Every file but those of the vendored runtime, in order."""
    return [path for path in sorted(project.rglob("*")) if path.is_file() and project / "vendor" not in path.parents]


def install(project: Path) -> None:
    """Make `project`/.venv with the project and its dev packages in it."""
    uv(project, "venv", "--quiet", "--python", sys.executable, ".venv")
    uv(project, "pip", "install", "--quiet", "--python", ".venv/bin/python", "-e", ".[dev]")


def uv(project: Path, *arguments: str) -> None:
    """Run uv in `project`, whatever environment the caller is in."""
    environment = {name: value for name, value in os.environ.items() if name not in {"UV_PYTHON", "VIRTUAL_ENV"}}
    program = Path(sys.executable).with_name("uv")
    subprocess.run([str(program), *arguments], cwd=project, check=True, env=environment)


def invoke(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a task of an installed project."""
    return installed(project, "invoke", *arguments)


def installed(project: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program of a project's environment, with the developer tools that are installed there."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [str(project / ".venv" / "bin" / program), *arguments]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


def uninstalled(project: Path, *arguments: str) -> str:
    """What a task of a project prints that has no environment of its own yet: it needs none."""
    command = [sys.executable, "-m", "invoke", *arguments]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
