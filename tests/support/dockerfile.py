"""Dockerfile: reads one, and carries out the steps of its first stage in a folder, for machines without an engine.

What an engine does beyond that is left out: the base image (the Python of the tests stands in), layers, users.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.support.baking import uv

# Where the stage of the rendered Dockerfile works.
ABSOLUTE = re.compile(r"(?<![\w/.])/(build|dist|site)\b")


TEMPLATE = Path(__file__).parents[2] / "<<cookiecutter.operator_slug>>" / "Dockerfile"


def allocator_settings() -> dict[str, str]:
    """The variables by which the image sets the C library's allocator: processes of tests and benchmarks have them."""
    return dict(re.findall(r"(MALLOC_\w+)=(\d+)", TEMPLATE.read_text("utf-8")))


class Step(NamedTuple):
    """One instruction: `Step("RUN", "pip wheel .")`."""

    name: str
    argument: str


def stages(text: str) -> list[list[Step]]:
    """The instructions by stage, each beginning with its FROM."""
    found: list[list[Step]] = []
    for line in text.replace("\\\n", "").splitlines():
        if line and not line.startswith("#"):
            name, argument = line.split(maxsplit=1)
            if name == "FROM":
                found.append([])
            found[-1].append(Step(name, argument))
    return found


def sent(project: Path) -> set[str]:
    """The files and folders that .dockerignore lets through to the builder, by their paths within `project`."""
    lines = (project / ".dockerignore").read_text(encoding="utf-8").splitlines()
    found = (path for line in lines if line[0] == "!" for path in project.glob(line[1:]))
    return {path.relative_to(project).as_posix() for path in found}


def build(project: Path, folder: Path) -> Path:
    """Carry out the first stage below `folder`, with the tests' Python as `python`; returns its /site."""
    tools = folder / "python"
    uv(folder, "venv", "--quiet", "--seed", "--python", sys.executable, str(tools))
    environment = {**os.environ, "PATH": f"{tools}/bin:{os.environ['PATH']}", "PYTHONPATH": ""}
    (at := folder / "build").mkdir()

    def moved(text: str) -> str:
        return ABSOLUTE.sub(lambda path: f"{folder}/{path[1]}", text)

    allowed = sent(project)
    for name, argument in stages((project / "Dockerfile").read_text(encoding="utf-8"))[0]:
        match name:
            case "ENV":
                environment |= dict(word.split("=", 1) for word in shlex.split(argument))
            case "COPY":
                *sources, target = argument.split()
                for source in sources:
                    assert source in allowed, f"{source} is not sent to the builder"
                    if (project / source).is_dir():
                        shutil.copytree(project / source, at / target)
                    else:
                        shutil.copy(project / source, at / target)
            case "RUN":
                done = subprocess.run(
                    ["sh", "-c", moved(argument)], cwd=at, env=environment, capture_output=True, text=True, check=False
                )
                assert done.returncode == 0, f"{argument}\n{done.stdout}{done.stderr}"
            case _:
                assert name in {"FROM", "WORKDIR"}, name
    return folder / "site"
