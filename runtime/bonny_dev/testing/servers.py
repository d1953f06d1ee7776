"""Servers: lets a periodic task, or a reconciler, do its work once, without a server.

    assert await testing.run_task(heartbeat, state=1) == Next(2)

Nothing is sent: what asks the API server is tested against a sandbox.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn, cast

from bonny.calling import call
from bonny.client.api import Client
from bonny.errors import OptionError
from bonny.resource import Resource
from bonny.servers.periodic import Next, PeriodicTask, PeriodicTasks, Stop, TaskRun
from bonny.servers.reconciler import Reconciler


class _UnavailableClient:
    """A client that cannot send anything."""

    def __getattr__(self, name: str) -> NoReturn:
        raise OptionError(f"a test without a server sends nothing ({name}): test what needs one against a sandbox")


NO_CLIENT: Final = cast("Client", _UnavailableClient())


async def run_task(task: PeriodicTask, *, state: Any = None) -> Next | Stop | None:
    """One run of `task`, and what it returns; `state` is what `run.state` is. Default: that of the task.

    Raises: what the handler raises.
    """
    run = TaskRun(task.id, task.state if state is None else state, NO_CLIENT, PeriodicTasks(NO_CLIENT))
    return cast("Next | Stop | None", await call(task.handler, run, *task.arguments))


async def reconcile(reconciler: type[Reconciler], resource: Resource) -> None:
    """Let `reconciler` look at `resource`, as it does in each of its rounds.

    Raises: what `reconcile` raises; `HandlerTimeout` when it takes longer than the `timeout` of the class.
    """
    await call(reconciler(NO_CLIENT).reconcile, resource, seconds=reconciler.timeout)
