"""Testing without a server: one run of a periodic task, one look of a reconciler."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from bonny import List, PeriodicTask, Reconciler, Resource, Stop, TaskRun, key_of
from bonny.calling import HANDLER_THREAD, HandlerTimeout
from bonny_dev import testing

POD: Resource = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}}


async def test_a_task_gets_its_id_its_state_and_its_arguments() -> None:
    def told(run: TaskRun, *words: str) -> Stop:
        return Stop(f"{run.id} {run.state} {words} {threading.current_thread().name}")

    task = PeriodicTask("teller", told, arguments=("a", "b"), state=3)

    assert await testing.run_task(task) == Stop(f"teller 3 ('a', 'b') {HANDLER_THREAD}")
    assert await testing.run_task(task, state=4) == Stop(f"teller 4 ('a', 'b') {HANDLER_THREAD}")


async def test_what_a_task_registers_does_not_run() -> None:
    answers: list[bool] = []

    async def registers(run: TaskRun) -> None:
        answers.append(run.tasks.register(PeriodicTask("other", registers)))

    assert await testing.run_task(PeriodicTask("one", registers)) is None
    assert answers == [True]


async def test_a_task_or_a_reconciler_that_sends_needs_an_answer() -> None:
    async def sends(run: TaskRun) -> None:
        await run.client.list(List("v1", "Pod"))

    class Sends(Reconciler):
        operation = List("v1", "Pod")

        async def reconcile(self, pod: Resource) -> None:
            await self.client.delete(self.operation, key_of(pod))

    with pytest.raises(AssertionError, match=r'^no answer to "list pods" is given'):
        await testing.run_task(PeriodicTask("sender", sends))
    with pytest.raises(AssertionError, match=r'^no answer to "delete pods default/p" is given'):
        await testing.reconcile(Sends, POD)


async def test_a_reconciler_has_its_timeout() -> None:
    class Slow(Reconciler):
        operation = List("v1", "Pod")
        timeout = 0.01

        async def reconcile(self, _: Resource) -> Any:
            await asyncio.Event().wait()

    with pytest.raises(HandlerTimeout):
        await testing.reconcile(Slow, POD)
