"""Contestants: how each is built, started, watched and told apart.

What is built or installed for a peer stays in `~/.cache/bonny/bench`, in a folder that is named by a hash of what it
was made from. Nothing is installed into our own environment.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from bonny.sandbox import Sandbox, cache
from bonny.sandbox.guard import Guard

__all__ = ["BONNY", "CHILDREN", "CONTROLLER_RUNTIME", "KOPF", "NAMES", "Calls", "Contestant", "Run", "prepare"]

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent.parent
BONNY: Final = "bonny"
KOPF: Final = "kopf"
CONTROLLER_RUNTIME: Final = "controller-runtime"
NAMES: Final = (BONNY, CONTROLLER_RUNTIME, KOPF)

# Ten times what the slowest contestant took for 10,000 objects, and room for a slow start.
SECONDS_PER_OBJECT: Final = 0.01
START_SECONDS: Final = 60.0
POLL_SECONDS: Final = 0.02
STOP_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Contestant:
    """A command that follows Widgets, and what it is made of."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


OURS: Final = {"PYTHONPATH": os.pathsep.join((str(ROOT / "runtime"), str(ROOT))), "BONNY_HTTP_PORT": "0"}
CHILDREN: Final = Contestant(BONNY, (sys.executable, "-m", "bench.core.children_operator"), OURS)


class Calls(NamedTuple):
    """When the handler was called for the first and for the last of all objects (seconds since 1970)."""

    first: float
    last: float


def prepare(names: Iterable[str]) -> list[Contestant]:
    """The contestants of these names, ready to be started; controller-runtime only where Go is on PATH."""
    known = {BONNY: _bonny, CONTROLLER_RUNTIME: _controller_runtime, KOPF: _kopf}
    if shutil.which("go") is None:
        print("Go is not on PATH: controller-runtime does not take part", flush=True)
        del known[CONTROLLER_RUNTIME]
    return [known[name]() for name in names if name in known]


def _bonny() -> Contestant:
    return Contestant(BONNY, (sys.executable, "-m", "bench.core.bonny_operator"), OURS)


def _kopf() -> Contestant:
    requirements = HERE / "kopf-requirements.txt"
    folder = _folder(KOPF, requirements.read_bytes(), sys.version.encode())
    kopf = folder / "bin" / "kopf"
    if not kopf.exists():
        print(f"installing kopf into {folder} ...", flush=True)
        _uv("venv", "--clear", "--python", sys.executable, str(folder))
        _uv("pip", "sync", "--compile-bytecode", "--python", str(folder / "bin" / "python"), str(requirements))
    command = (str(kopf), "run", "--standalone", "--all-namespaces", "--module", "bench.core.kopf_operator")
    return Contestant(KOPF, command, {"PYTHONPATH": str(ROOT)})


def _controller_runtime() -> Contestant:
    sources = HERE / "controller_runtime"
    folder = _folder(CONTROLLER_RUNTIME, *((sources / name).read_bytes() for name in ("main.go", "go.mod", "go.sum")))
    program = folder / "contestant"
    if not program.exists():
        print(f"building controller-runtime's contestant in {folder} ...", flush=True)
        unfinished = program.with_suffix(".new")
        command = ["go", "build", "-trimpath", "-o", str(unfinished), "."]
        subprocess.run(command, cwd=sources, env={**os.environ, "CGO_ENABLED": "0"}, check=True)
        unfinished.replace(program)
    return Contestant(CONTROLLER_RUNTIME, (str(program),))


def _uv(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "uv", "--quiet", *arguments], check=True)


def _folder(name: str, *sources: bytes) -> Path:
    """Where to keep what is made from `sources`; another folder whenever one of them changes."""
    digest = hashlib.sha256(b"".join(sources)).hexdigest()[:16]
    folder = cache.root().parent / "bench" / f"{name}-{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _account(guard: Guard, sandbox: Sandbox) -> Path:
    """A folder like the one in which a pod finds its ServiceAccount."""
    folder = guard.folder / "account"
    folder.mkdir(exist_ok=True)
    (folder / "token").write_text(sandbox.token, encoding="ascii")
    (folder / "ca.crt").write_bytes(sandbox.ca_file.read_bytes())
    return folder


class Run:
    """One process of a contestant, from its exec to its end."""

    def __init__(
        self, contestant: Contestant, guard: Guard, sandbox: Sandbox, *, objects: int, profile: Path | None = None
    ) -> None:
        """Start it; `objects` is how many it has to see, `profile` a file for ours to leave a profile in."""
        name = f"{contestant.name}-{time.monotonic_ns()}"
        self._name = contestant.name
        self._profile = profile
        self._log = guard.folder / f"{name}.log"
        self._tally = guard.folder / f"{name}.tally"
        self._objects = objects
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("BONNY_", "KUBE", "PYTHON"))}
        environment = {
            **kept,
            **contestant.environment,
            "KUBECONFIG": str(sandbox.kubeconfig),
            "BENCH_SERVER": sandbox.url,
            "BENCH_ACCOUNT": str(_account(guard, sandbox)),
            "BENCH_OBJECTS": str(objects),
            "BENCH_TALLY": str(self._tally),
            **({"BENCH_PROFILE": str(profile)} if profile is not None else {}),
        }
        self.began = time.time()
        """Just before the exec (seconds since 1970)."""
        self.process = guard.popen(contestant.command, log_file=self._log, env=environment, cwd=ROOT)

    @property
    def pid(self) -> int:
        return self.process.pid

    def seen(self, size: int) -> Calls:
        """Wait until all objects were seen at `size`. Raises: `RuntimeError` when that takes too long, or it ended."""
        within = START_SECONDS + SECONDS_PER_OBJECT * self._objects
        ends = time.monotonic() + within
        while True:
            calls = self._calls(size)
            if calls is not None:
                return calls
            if self.process.poll() is not None:
                raise RuntimeError(f"{self._name} ended with code {self.process.returncode}: {self._last_lines()}")
            if time.monotonic() > ends:
                raise RuntimeError(
                    f"{self._name} has not seen all {self._objects} objects within {within:.0f} s: {self._last_lines()}"
                )
            time.sleep(POLL_SECONDS)

    def mark(self) -> None:
        """Let a profile end here and a new one begin."""
        if self._profile is not None:
            self.process.send_signal(signal.SIGUSR1)

    def stop(self) -> None:
        """SIGTERM, and SIGKILL for what does not mind it."""
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _calls(self, size: int) -> Calls | None:
        try:
            lines = self._tally.read_text("utf-8").splitlines()
        except FileNotFoundError:
            return None
        counted = {int(count): float(at) for told, count, at in map(str.split, lines) if int(told) == size}
        return Calls(counted[1], counted[self._objects]) if self._objects in counted else None

    def _last_lines(self) -> str:
        return "\n".join(["its last lines:", *self._log.read_text("utf-8", "replace").splitlines()[-20:]])
