"""Contestants: how each is built or installed.

Builds and installations stay in `~/.cache/bonny/bench`, in folders that are named by a hash of their sources. Nothing
is installed into our own environment.
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
from typing import Final, NamedTuple, TypeAlias

from bonny_dev.sandbox import cache
from tests.support.dockerfile import allocator_settings

__all__ = [
    "BONNY",
    "BONNY_UVLOOP",
    "CONTROLLER_RUNTIME",
    "KOPF",
    "KUBE_RS",
    "NAMES",
    "ROOT",
    "Contestant",
    "Makers",
    "Prepared",
    "bonny",
    "cached",
    "controller_runtime",
    "kopf",
    "kube_rs",
    "prepare",
]

ROOT: Final = Path(__file__).resolve().parent.parent.parent
GO_MODULE: Final = ROOT / "bench" / "controller_runtime"
CRATE: Final = ROOT / "bench" / "kube_rs"
BONNY: Final = "bonny"
BONNY_UVLOOP: Final = "bonny-uvloop"
KOPF: Final = "kopf"
CONTROLLER_RUNTIME: Final = "controller-runtime"
KUBE_RS: Final = "kube-rs"
NAMES: Final = (BONNY, BONNY_UVLOOP, CONTROLLER_RUNTIME, KUBE_RS, KOPF)
# The program that builds a contestant. Without it the contestant does not take part.
BUILT_BY: Final[Mapping[str, str]] = {CONTROLLER_RUNTIME: "go", KUBE_RS: "cargo"}
# The event loop of ours, as `ours` reads it. Left to itself the runtime uses uvloop wherever it is installed.
STOCK_LOOP: Final = "asyncio"
LOOPS: Final[Mapping[str, str]] = {BONNY_UVLOOP: "uvloop"}


@dataclass(frozen=True, slots=True)
class Contestant:
    """A command that follows Widgets, and what it is made of."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    resyncs: bool = True
    """Whether it handles unchanged objects again from time to time."""


Makers: TypeAlias = Mapping[str, Callable[[], Contestant]]
"""The functions that make the contestants of a bench, by name."""


class Prepared(NamedTuple):
    """The contestants that are ready to start, and for each of the others a sentence with the reason."""

    contestants: Sequence[Contestant]
    absent: Mapping[str, str]


def prepare(makers: Makers, names: Iterable[str] = ()) -> Prepared:
    """Build or install the contestants of these names (default: all)."""
    wanted = list(names or makers)
    absent = {
        name: f"{name} did not take part: {BUILT_BY[name]} is not on PATH"
        for name in wanted
        if name in BUILT_BY and shutil.which(BUILT_BY[name]) is None
    }
    return Prepared([makers[name]() for name in wanted if name not in absent], absent)


def bonny(module: str, name: str = BONNY, *, folder: Path = ROOT) -> Contestant:
    """One of ours: a module of this repository, or of the copy in `folder`, run with the Python that runs the bench."""
    path = os.pathsep.join((str(folder / "runtime"), str(folder)))
    # Without PYTHONSAFEPATH the working directory would come before the copy.
    environment = {"PYTHONPATH": path, "PYTHONSAFEPATH": "1", "BONNY_HTTP_PORT": "0", **allocator_settings()}
    return Contestant(name, (sys.executable, "-m", module), {**environment, "BENCH_LOOP": LOOPS.get(name, STOCK_LOOP)})


def kopf(module: str, *requirements: Path) -> Contestant:
    """A module that is run by `kopf run`, with what the files in `requirements` list and nothing else."""
    folder = cached(KOPF, *(file.read_bytes() for file in requirements), sys.version.encode())
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

    def build(target: Path) -> None:
        command = ["go", "build", "-trimpath", "-o", str(target), f"./{program}"]
        subprocess.run(command, cwd=GO_MODULE, env={**os.environ, "CGO_ENABLED": "0"}, check=True)

    return Contestant(CONTROLLER_RUNTIME, (str(_built(CONTROLLER_RUNTIME, sources, build)),))


def kube_rs(mode: str) -> Contestant:
    """Our Rust program, with the argument that selects what it does."""
    sources = [CRATE / "Cargo.toml", CRATE / "Cargo.lock", *sorted((CRATE / "src").glob("*.rs"))]

    def build(target: Path) -> None:
        # Next to the program, so that nothing is built into the repository.
        folder = target.with_name("target")
        command = ["cargo", "build", "--release", "--locked", "--quiet", "--target-dir", str(folder)]
        subprocess.run(command, cwd=CRATE, check=True)
        shutil.copy(folder / "release" / "contestant", target)
        shutil.rmtree(folder)

    return Contestant(KUBE_RS, (str(_built(KUBE_RS, sources, build)), mode))


def _built(name: str, sources: Sequence[Path], build: Callable[[Path], None]) -> Path:
    """The program that `build` makes of `sources`; from the cache if nothing changed."""
    program = cached(name, *(file.read_bytes() for file in sources)) / "contestant"
    if not program.exists():
        print(f"building the contestant {name} in {program.parent} ...", flush=True)
        unfinished = program.with_suffix(".new")
        build(unfinished)
        unfinished.replace(program)
    return program


def _uv(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "uv", "--quiet", *arguments], check=True)


def cached(name: str, *sources: bytes) -> Path:
    """Where to keep what is made from `sources`; another folder whenever one of them changes."""
    digest = hashlib.sha256(b"".join(sources)).hexdigest()[:16]
    folder = cache.root().parent / "bench" / f"{name}-{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
