"""Tasks `sandbox.*`: a real API server on this machine, for tests and for trying things out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

from invoke.context import Context

from .declaring import task

Workloads: TypeAlias = Annotated[bool, "also controllers and simulated kubelets: Deployments become Available"]


@task()
def start(
    c: Context,
    foreground: Annotated[bool, "stay in this terminal, and run until Ctrl-C"] = False,
    workloads: Workloads = False,
) -> None:
    """Start etcd and kube-apiserver in the background, for 12 hours at most, and print how to reach them."""
    from bonny_dev.sandbox import commands

    if foreground:
        commands.run(Path(c.root), workloads=workloads)
    else:
        commands.start(Path(c.root), workloads=workloads)


@task()
def stop(c: Context) -> None:
    """Stop the sandbox of `sandbox.start`."""
    from bonny_dev.sandbox import commands

    commands.stop(Path(c.root))


@task()
def fetch(
    c: Context,
    workloads: Annotated[bool, "also kube-controller-manager, which --workloads needs"] = False,
) -> None:
    """Find, download or build etcd and kube-apiserver, so that later starts are quick."""
    from bonny_dev.sandbox import commands

    commands.fetch(workloads=workloads)
