"""Baseline: this repository at an earlier commit, as a contestant.

The commit is in the file `BASELINE`; the variable `BENCH_BASELINE` names another one. Its own contestants run with its
own runtime, from a copy in the cache, and with the libraries of the environment that runs the bench.
"""

from __future__ import annotations

import compileall
import io
import os
import subprocess
import tarfile
from pathlib import Path
from typing import Final

from bench.harness.contestants import ROOT, Contestant, bonny, cached
from bonny.errors import UsageError

__all__ = ["BASELINE", "baseline", "commit"]

BASELINE: Final = "baseline"
COMMIT_FILE: Final = Path(__file__).with_name("BASELINE")
# The runtime, the contestants, and what these import.
PARTS: Final = ("runtime", "bench", "tests")


def baseline(module: str) -> Contestant:
    """A module of the baseline on asyncio's own event loop. Raises: `UsageError` when the commit is not there."""
    hash_ = commit()
    tree = cached(BASELINE, hash_.encode()) / "tree"
    if not tree.exists():
        unfinished = tree.with_suffix(".new")
        with tarfile.open(fileobj=io.BytesIO(_git("archive", hash_, "--", *PARTS))) as files:
            files.extractall(unfinished, filter="data")
        # A start is measured, too.
        compileall.compile_dir(unfinished, quiet=2)
        unfinished.replace(tree)
    return bonny(module, BASELINE, folder=tree)


def commit() -> str:
    """The hash of the baseline. Raises: `UsageError` when this clone does not have the commit."""
    name = os.environ.get("BENCH_BASELINE") or COMMIT_FILE.read_text("utf-8").strip()
    try:
        return _git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").decode().strip()
    except subprocess.CalledProcessError as error:
        raise UsageError(f"this clone has no commit {name}: run git fetch --unshallow") from error


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout
