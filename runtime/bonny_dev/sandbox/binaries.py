"""Binaries: where etcd, kube-apiserver and, only on request, kube-controller-manager come from.

In this order: what TEST_ASSET_ETCD, TEST_ASSET_KUBE_APISERVER and KUBEBUILDER_ASSETS name; the cache folder; the
official envtest archive or program; a build from Go modules. The first two are quick; the others fill the cache, one
process at a time.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from . import build, cache, download
from .cache import Progress
from .guard import Guard
from .processes import SandboxError
from .versions import KUBERNETES, check

# The programs of a sandbox. `obtain` also takes kube-scheduler and kube-controller-manager.
SANDBOX: Final = ("etcd", "kube-apiserver")


def find_or_build(progress: Progress | None = None) -> dict[str, Path]:
    """Find, download or build the programs of a sandbox; `progress` is called with a line from time to time.

    Raises: `SandboxError` when that is impossible: one sentence with the ways out.
    """
    return obtain(SANDBOX, progress)


def obtain(names: Sequence[str], progress: Progress | None = None) -> dict[str, Path]:
    """The named programs, each from the first place that has it. Raises: as `find_or_build`."""
    say = progress or silent
    for name in names:
        build.recipe(name)  # refuses an unknown name
    programs = {name: program for name in names if (program := from_environment(name) or cache.lookup(name, say))}
    if len(programs) < len(names):
        with cache.workspace(say) as guard:
            for name in names:
                # Looked up again: another process may have filled the cache while we waited for our turn.
                programs[name] = programs.get(name) or cache.lookup(name, silent) or get(name, guard, say)
    return programs


def from_environment(name: str) -> Path | None:
    """The program that the environment names, as controller-runtime's envtest reads it. None when it names none.

    Raises: `SandboxError` when it names one that is missing, does not run here or is too old.
    """
    variable = "TEST_ASSET_" + name.upper().replace("-", "_")
    folder = os.environ.get("KUBEBUILDER_ASSETS", "")
    if path := os.environ.get(variable, ""):
        program, source = Path(path), f"{variable}={path}"
    elif folder and (name in SANDBOX or (Path(folder) / name).exists()):
        program, source = Path(folder) / name, f"KUBEBUILDER_ASSETS={folder}"
    else:
        return None
    if not os.access(program, os.X_OK) or not program.is_file():
        raise SandboxError(f"{source}: there is no program {program}; correct the variable, or unset it")
    check(program, name=name)
    return program.absolute()


def ready_made(name: str, progress: Progress | None = None) -> Path:
    """The program from the environment, from the cache or as an official download, but never from a build.

    Raises: `download.ArchiveError` where it would have to be built; `SandboxError` as `from_environment`.
    """
    say = progress or silent
    if program := from_environment(name) or cache.lookup(name, say):
        return program
    with cache.workspace(say) as guard:
        return cache.lookup(name, silent) or downloaded(name, guard, say)


def get(name: str, guard: Guard, progress: Progress) -> Path:
    """Download or build one program, with all that comes along, into the cache; returns where it is there."""
    no_archive = guard.folder / "no-archive"
    if name not in download.PROGRAMS or not no_archive.exists():
        try:
            return downloaded(name, guard, progress)
        except download.ArchiveError as error:
            if name in download.PROGRAMS:
                no_archive.touch()  # not tried again for the next program
            what = "archive" if name in download.PROGRAMS else name
            progress(f"no official {what} ({error}); building from source instead")
    return cache.install(build.build(name, guard, progress), cache.folder_of(KUBERNETES))


def downloaded(name: str, guard: Guard, progress: Progress) -> Path:
    """Download one program, with all that comes along, into the cache. Raises: `ArchiveError`."""
    if name not in download.PROGRAMS:
        return cache.install(download.fetch_program(name, guard.folder, progress), cache.folder_of(KUBERNETES))
    version = download.fetch(guard.folder, progress)
    for program in download.PROGRAMS:
        cache.install(guard.folder / program, cache.folder_of(version))
    return cache.folder_of(version) / name


def silent(_: str) -> None:
    """A progress that shows nothing."""
