"""Contestants: how each is built or installed.

What is built or installed for a peer stays in `~/.cache/bonny/bench`, in a folder that is named by a hash of what it
was made from. Nothing is installed into our own environment.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from bonny_dev.sandbox import cache

__all__ = [
    "BONNY",
    "CONTROLLER_RUNTIME",
    "KOPF",
    "NAMES",
    "ROOT",
    "Contestant",
    "Makers",
    "bonny",
    "controller_runtime",
    "kopf",
    "prepare",
]

ROOT: Final = Path(__file__).resolve().parent.parent.parent
GO_MODULE: Final = ROOT / "bench" / "controller_runtime"
BONNY: Final = "bonny"
KOPF: Final = "kopf"
CONTROLLER_RUNTIME: Final = "controller-runtime"
NAMES: Final = (BONNY, CONTROLLER_RUNTIME, KOPF)


@dataclass(frozen=True, slots=True)
class Contestant:
    """A command that follows Widgets, and what it is made of."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    resyncs: bool = True
    """Whether it handles unchanged objects again from time to time."""


Makers: TypeAlias = Mapping[str, Callable[[], Contestant]]
"""What makes the contestants of a bench, by their names."""


def prepare(makers: Makers, names: Iterable[str] = ()) -> list[Contestant]:
    """The contestants of these names (default: all), ready to start; controller-runtime only where Go is on PATH."""
    known = dict(makers)
    if shutil.which("go") is None and known.pop(CONTROLLER_RUNTIME, None) is not None:
        print("Go is not on PATH: controller-runtime does not take part", flush=True)
    return [known[name]() for name in (names or makers) if name in known]


def bonny(module: str) -> Contestant:
    """Ours: a module that is run with the Python that runs the bench."""
    path = os.pathsep.join((str(ROOT / "runtime"), str(ROOT)))
    return Contestant(BONNY, (sys.executable, "-m", module), {"PYTHONPATH": path, "BONNY_HTTP_PORT": "0"})


def kopf(module: str, *requirements: Path) -> Contestant:
    """A module that is run by `kopf run`, with what the files in `requirements` list and nothing else."""
    folder = _folder(KOPF, *(file.read_bytes() for file in requirements), sys.version.encode())
    program = folder / "bin" / "kopf"
    if not program.exists():
        print(f"installing kopf into {folder} ...", flush=True)
        python = str(folder / "bin" / "python")
        _uv("venv", "--clear", "--python", sys.executable, str(folder))
        _uv("pip", "sync", "--compile-bytecode", "--python", python, *map(str, requirements))
    command = (str(program), "run", "--standalone", "--all-namespaces", "--module", module)
    return Contestant(KOPF, command, {"PYTHONPATH": str(ROOT)}, resyncs=False)


def controller_runtime(program: str) -> Contestant:
    """One of the programs of our Go module, by the name of its folder."""
    sources = [GO_MODULE / "go.mod", GO_MODULE / "go.sum"]
    sources += sorted(file for package in ("widget", program) for file in (GO_MODULE / package).glob("*.go"))
    built = _folder(CONTROLLER_RUNTIME, *(file.read_bytes() for file in sources)) / "contestant"
    if not built.exists():
        print(f"building controller-runtime's contestant in {built.parent} ...", flush=True)
        unfinished = built.with_suffix(".new")
        command = ["go", "build", "-trimpath", "-o", str(unfinished), f"./{program}"]
        subprocess.run(command, cwd=GO_MODULE, env={**os.environ, "CGO_ENABLED": "0"}, check=True)
        unfinished.replace(built)
    return Contestant(CONTROLLER_RUNTIME, (str(built),))


def _uv(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "uv", "--quiet", *arguments], check=True)


def _folder(name: str, *sources: bytes) -> Path:
    """Where to keep what is made from `sources`; another folder whenever one of them changes."""
    digest = hashlib.sha256(b"".join(sources)).hexdigest()[:16]
    folder = cache.root().parent / "bench" / f"{name}-{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
