"""Baking: renders the template into a folder, and fills an environment for what was rendered.

You need it in every test about the template. Nothing of the person's own cookiecutter settings takes part.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

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
    command = [sys.executable, "-m", "cookiecutter", "--no-input", "--config-file", str(config)]
    command += ["--output-dir", str(out), str(template), *(f"{name}={text}" for name, text in (answers or {}).items())]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        errors="backslashreplace",
        check=False,
        env={**os.environ, "TMPDIR": str(settings)},  # cookiecutter leaves the hooks that it rendered behind
    )
    made = sorted(out.iterdir())
    return Baked(code=done.returncode, said=done.stdout + done.stderr, project=made[0] if made else out / "nothing")


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
    """Run a task of an installed project with its own Python."""
    program = project / ".venv" / "bin" / "invoke"
    return subprocess.run([str(program), *arguments], cwd=project, capture_output=True, text=True, check=False)


def uninstalled(project: Path, *arguments: str) -> str:
    """What a task of a project prints that has no environment of its own yet: it needs none."""
    command = [sys.executable, "-m", "invoke", *arguments]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
