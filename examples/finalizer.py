"""Finalizer: a bucket outside Kubernetes, here a folder, that is deleted with its object, and optionally copied before.

`finalize` on the controller adds a finalizer to each Bucket before its folder is created, and runs before the object is
deleted. The step `Finalizer` does the same under another name, for the objects that `when` selects. The step comes
before the controller's finalizer, because a deleted folder cannot be copied.

`when` is called only until the finalizer is there, so it reads a field that cannot be changed.

Both may run twice, for example after a crash, so both are idempotent.
"""

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from bonny import Axn, Controller, Field, Operator, Retry, Spec, Status, Version, WithConditions
from bonny.api import IMMUTABLE
from bonny.steps import (
    ApplyDescendants,
    ApplyStatus,
    DelegateToController,
    Finalizer,
    Logger,
    PruneDescendants,
    Reconcile,
)


class BucketSpec(Spec):
    """The desired state."""

    keep: Annotated[bool, IMMUTABLE] = Field(
        default=False, description="Whether a copy of the content is kept when the bucket goes."
    )


class BucketStatus(Status, WithConditions):
    """The observed state."""

    folder: str = ""
    phase: str = ""


class Bucket(Version):
    """A place for files."""

    kind = "Bucket"
    plural = "buckets"
    version = "v1"
    storage = True
    hub = True
    spec: BucketSpec
    status: BucketStatus


class BucketController(Controller[Bucket]):
    """Its handlers are `def`, so each runs in a thread: file access blocks."""

    def reconcile(self, axn: Axn[Bucket]) -> None:
        folder = folder_of(axn, self.options)
        folder.mkdir(parents=True, exist_ok=True)
        axn.update_status(lambda status: {**status, "folder": str(folder), "phase": "Made"})

    def finalize(self, axn: Axn[Bucket]) -> None:
        folder = folder_of(axn, self.options)
        wait_until_unused(axn, folder)
        shutil.rmtree(folder, ignore_errors=True)


def keep_a_copy(axn: Reconcile[Bucket]) -> None:
    """Copy the content to a folder that is not deleted."""
    folder = folder_of(axn, axn.controller.options)
    wait_until_unused(axn, folder)
    if folder.exists():
        shutil.copytree(folder, folder.with_name(f"{folder.name}.kept"), dirs_exist_ok=True)


def wait_until_unused(axn: Axn[Bucket], folder: Path) -> None:
    """A handler does not wait: it requests another call, and the status has the reason."""
    if (folder / "in-use").exists():
        axn.update_status(lambda status: {**status, "phase": "InUse"})
        raise Retry("the bucket is in use", after=1.0)


def folder_of(axn: Axn[Bucket], options: Mapping[str, str]) -> Path:
    """Where the files are: the UID keeps it apart from the folders of earlier buckets of the same name."""
    return Path(options["root"]) / axn.uid


operator = Operator(
    name="buckets",
    group="buckets.example.com",
    controllers=[BucketController.configured(options={"root": f"{tempfile.gettempdir()}/buckets"})],
    steps=(
        Logger(),
        Finalizer("buckets.example.com/copy", implementation=keep_a_copy, when=lambda axn: axn.spec.keep),
        Finalizer(),
        DelegateToController(),
        ApplyDescendants(),
        PruneDescendants(),
        ApplyStatus(),
    ),
)
