"""Servers: lets a periodic task, or a reconciler, do its work once, without a server.

    assert await testing.run_task(heartbeat, state=1) == Next(2)

Nothing is sent: the test answers the requests of the client, as for `handle`.
"""

from __future__ import annotations

from typing import Any, cast

from bonny.calling import call
from bonny.resource import Resource
from bonny.servers.periodic import Next, PeriodicTask, PeriodicTasks, Stop, TaskRun
from bonny.servers.reconciler import Reconciler

from .answers import AnsweringClient, AnyAnswers


async def run_task(task: PeriodicTask, *, state: Any = None, answers: AnyAnswers | None = None) -> Next | Stop | None:
    """One run of `task`, and its result; `state` is `run.state`. Default: that of the task.

    `answers` are the answers to its requests with `run.client`, see `handle`.
    Raises: the errors of the handler.
    """
    client = AnsweringClient(answers or {}, served=task)
    run = TaskRun(task.id, task.state if state is None else state, client, PeriodicTasks(client))
    result = cast("Next | Stop | None", await call(task.handler, run, *task.arguments))
    client.check()
    return result


async def reconcile(reconciler: type[Reconciler], resource: Resource, *, answers: AnyAnswers | None = None) -> None:
    """Let `reconciler` look at `resource`, as it does in each of its rounds. Its `lifespan` surrounds that.

    `answers` are the answers to its requests with `self.client`, see `handle`.
    Raises: the errors of `reconcile`; `HandlerTimeout` when it takes longer than the `timeout` of the class.
    """
    group = resource.get("apiVersion", "").rpartition("/")[0]
    client = AnsweringClient(answers or {}, served=reconciler, group=group)
    made = reconciler(client)
    async with made.lifespan():
        await call(made.reconcile, resource, seconds=reconciler.timeout)
    client.check()
