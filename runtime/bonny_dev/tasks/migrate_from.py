"""Migrate from: moves the code or the objects of an operator of another framework to this one.

You need it for `invoke migrate-from`. The parts: `port_kopf` for code, `take_over` for objects.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from bonny.errors import UsageError

from ..project import Project
from ..ways_in.kopf_code import read_kopf
from ..ways_in.sources import traces_of
from .deploy import cluster_of
from .options import Move, separated
from .port_kopf import Port, listing, plan_controllers
from .take_over import take_over


def move_objects(project: Project, options: Move) -> bool:
    """Take the objects of the cluster over; returns whether none is left. Raises: `UsageError`; `ApiError`."""
    names = map(separated, (options.finalizer, options.annotation, options.manager))
    traces = traces_of(options.source).with_names(*names)
    if options.back and (options.annotation or options.manager):
        raise UsageError("--back changes finalizers only: leave out --annotation and --manager")
    operator = project.load_operator()
    cluster = cluster_of(options.context)
    return asyncio.run(take_over(cluster, operator, traces, back=options.back, dry_run=options.dry_run))


def move_code(project: Project, options: Move) -> Port:
    """Print the handlers, and plan the controllers.

    Raises: `UsageError`, also without `dry_run` for a kind that has no class in the repository.
    """
    traces_of(options.source)
    if options.source != "kopf":
        raise UsageError(f"--code reads modules of kopf only: for {options.source} see its page in docs/how-to")
    if options.back or options.finalizer or options.annotation or options.manager or options.context:
        raise UsageError("--code does not touch the cluster: leave out the options for it")
    module = read_kopf(Path(options.code))
    print(*listing(module), sep="\n", flush=True)
    port = plan_controllers(project, module)
    if port.unknown:
        advice = f"api/ has no class of {', '.join(port.unknown)}: run `invoke gen-api --from-crd` first"
        if not options.dry_run:
            raise UsageError(f"{advice}; nothing was written")
        print(advice, flush=True)
    return port
