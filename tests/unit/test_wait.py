"""Wait: what a handler that waits leaves behind, and when it runs again; no server."""

from __future__ import annotations

import math
import time
from typing import Any

import pytest

from bonny import Axn, Controller, Owned, Resource, Retry, Wait
from bonny.core.queue import Reason
from bonny.core.records import Action, applied_record
from bonny.errors import BonnyError, OptionError
from bonny.events import EventType
from bonny.pipeline import Pipeline, run_step
from bonny.resource import Key
from bonny.steps import (
    ApplyDescendants,
    ApplyStatus,
    DelegateToController,
    Finalizer,
    PruneDescendants,
)
from bonny_dev import testing
from tests.support.core import thing
from tests.support.steps import CONFIG_MAP, Script, owned, token
from tests.support.waiting import until
from tests.support.widget import Widget, widget
from tests.support.working import Quiet, at_work, lists, says, worker_of

W1 = Key("default", "w1")


def config_map(name: str, **metadata: Any) -> Resource:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


class Starting(Controller[Widget]):
    """Waits for its database."""

    owns = (Owned("v1", "ConfigMap"),)

    async def reconcile(self, axn: Axn[Widget]) -> None:
        axn.register_descendant(config_map("database"))
        axn.set_condition("Ready", True)
        axn.success_event(reason="Started")
        axn.register_event(None, EventType.NORMAL, "Starting", "Start", "the database was asked to start")
        raise Wait("the database is starting", after=10)


# --- what a user tests ------------------------------------------------------------------------------------------------


async def test_a_handler_that_waits_is_tested_by_what_it_waits_for_and_what_it_registered() -> None:
    handled = await testing.handle(Starting, widget())

    assert handled.waiting == "the database is starting"
    testing.assert_requeued(handled, after=10)
    testing.assert_descendant(handled, "ConfigMap", "database")


@pytest.mark.parametrize("action", ["add", "modify", "reconcile", "finalize"])
@pytest.mark.parametrize("awaits", [True, False])
async def test_every_handler_may_wait(action: str, awaits: bool) -> None:
    def waits(self: object, axn: Axn[Any]) -> None:
        raise Wait("not yet")

    async def waits_on_the_loop(self: object, axn: Axn[Any]) -> None:
        raise Wait("not yet")

    controller = type("Waits", (Controller,), {"resource": Widget, action: waits_on_the_loop if awaits else waits})
    handled: Any = await testing.handle(controller, widget(), action=action)

    assert (handled.waiting, handled.requeue_seconds) == ("not yet", None)


async def test_a_time_that_was_asked_for_before_stays_when_the_wait_names_none() -> None:
    class Asks(Controller[Widget]):
        async def reconcile(self, axn: Axn[Widget]) -> None:
            axn.requeue_after(5)
            raise Wait("not yet")

    testing.assert_requeued(await testing.handle(Asks, widget()), after=5)


@pytest.mark.parametrize("after", [0, -1, math.inf, math.nan])
def test_a_wait_of_an_impossible_time_is_refused(after: float) -> None:
    with pytest.raises(OptionError, match=r"Wait\(after="):
        Wait("not yet", after=after)


# --- the pipeline -----------------------------------------------------------------------------------------------------


def steps() -> Pipeline:
    return Pipeline([Finalizer(), DelegateToController(), ApplyDescendants(), PruneDescendants(), ApplyStatus()])


def child(name: str) -> Resource:
    """A child that this controller applied."""
    labels = {"app.kubernetes.io/managed-by": "op", "bonny.dev/owner-uid": "u-1"}
    metadata = {"namespace": "default", "uid": f"u-{name}", "resourceVersion": "5", "labels": labels}
    return owned(config_map(name, **metadata), {"f:data": {}})


def written() -> Resource:
    """The Widget after a write of its status."""
    return {**widget(), "metadata": {**widget()["metadata"], "resourceVersion": "8"}}


async def test_what_a_waiting_handler_registered_is_applied_and_nothing_is_pruned() -> None:
    script = Script(child("database"), written(), children=[child("other")])
    axn = token(script, controller=Starting())
    other = applied_record({}, child("other"), {})
    script.applied_records[CONFIG_MAP, Key("default", "other")] = other

    await steps().run(axn)

    assert [verb for verb, _ in script.requests] == ["apply", "apply"], "the child and the status; no deletion"
    conditions = {each["type"]: each for each in script.requests[1][1]["status"]["conditions"]}
    why = {name: conditions["Reconciled"][name] for name in ("status", "reason", "message", "observedGeneration")}
    assert why == {
        "status": "False",
        "reason": "Waiting",
        "message": "the database is starting",
        "observedGeneration": 4,
    }
    assert (conditions["Ready"]["status"], conditions["Ready"]["reason"]) == ("False", "Waiting")
    assert script.applied_records[CONFIG_MAP, Key("default", "other")] is other, "what is known of it stays known"


async def test_descendants_that_a_handler_applied_before_it_waits_prune_nothing_either() -> None:
    class Early(Starting):
        async def reconcile(self, axn: Axn[Widget]) -> None:
            await run_step(axn, ApplyDescendants())  # type: ignore[arg-type]  as compat.Axn.apply_descendants does
            raise Wait("not yet")

    script = Script(widget(), children=[child("other")])
    axn = token(script, controller=Early())

    # Also where an operator's own pipeline prunes in another order.
    await Pipeline([DelegateToController()]).run(axn)
    await run_step(axn, PruneDescendants())

    assert script.requests == []


async def test_events_of_a_waiting_handler_are_sent_but_none_that_claims_success_and_no_warning() -> None:
    script = Script(child("database"), written())
    script.wrote = True

    await steps().run(token(script, controller=Starting()))

    assert [event.reason for _, event in script.recorded] == ["Starting"]


async def test_after_a_wait_only_the_steps_run_that_shape_apply_or_report() -> None:
    seen: list[str | None] = []

    def waits(axn: Axn[Any]) -> None:
        raise Wait("approval is missing")

    def handler(axn: Axn[Any]) -> None:
        seen.append("handler")

    def shapes(axn: Axn[Any]) -> None:
        seen.append(axn.waiting)

    shapes.runs_while_waiting = True  # type: ignore[attr-defined]
    axn = token(Script())
    await Pipeline([waits, handler, shapes]).run(axn)

    assert seen == ["approval is missing"]
    assert axn.failure is None


async def test_a_failure_after_a_wait_is_a_failure() -> None:
    class Fails:
        runs_while_waiting = True

        def __call__(self, axn: Axn[Any]) -> None:
            raise BonnyError("the API server is down")

    def waits(axn: Axn[Any]) -> None:
        raise Wait("not yet")

    axn = token(Script())
    with pytest.raises(BonnyError, match="down"):
        await Pipeline([waits, Fails()]).run(axn)
    assert (axn.unfinished and axn.unfinished.reason) == "HandlerFailed"


async def test_a_finalize_that_waits_keeps_the_finalizer() -> None:
    class Emptying(Starting):
        async def finalize(self, axn: Axn[Widget]) -> None:
            raise Wait("the bucket is not empty")

    shown = widget()
    shown["metadata"] |= {"finalizers": ["example.com/op"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    script = Script(shown, written())
    axn = token(script, shown, controller=Emptying(), action=Action.FINALIZE)

    await steps().run(axn)

    assert [verb for verb, _ in script.requests] == ["get", "apply"], "the status; the finalizer is not patched"
    assert axn.waiting == "the bucket is not empty"


# --- the worker -------------------------------------------------------------------------------------------------------


async def test_a_wait_with_a_time_is_run_again_without_backoff_and_not_counted_as_an_error() -> None:
    tries: list[tuple[str, int, frozenset[Reason]]] = []

    class Waits(Quiet):
        async def reconcile(self, axn: Axn[Any]) -> None:
            tries.append((axn.action, axn.tries, axn.reasons))
            if len(tries) < 3:
                raise Wait("not yet", after=0.01)

    worker = worker_of(DelegateToController(), controller=Waits())
    await lists(worker.router.primary[0], thing("w1"))
    async with at_work(worker):
        await until(lambda: worker.handled)

    again = ("add", 0, frozenset({Reason.REQUEUE}))
    assert tries == [("add", 0, frozenset({Reason.ADDED})), again, again], "the add did not succeed before"
    meters = worker.meters
    assert (meters.waiting, meters.errors, meters.requeued, meters.requeued_after) == (2, 0, 0, 0)
    assert worker.router.queue.retries == 0


async def test_a_wait_without_a_time_is_woken_by_a_change_only() -> None:
    calls: list[str] = []

    class Waits(Quiet):
        async def reconcile(self, axn: Axn[Any]) -> None:
            calls.append(axn.action)
            raise Wait("not yet")

    worker = worker_of(DelegateToController(), controller=Waits())
    stream = worker.router.primary[0]
    await lists(stream, thing("w1", generation=1))
    async with at_work(worker):
        await until(lambda: worker.meters.waiting == 1)
        statistics = worker.router.queue.statistics(now=time.monotonic())
        assert (statistics.ready, statistics.delayed, statistics.timers) == (0, 0, 1), "the timer of the resync"
        await says(stream, "MODIFIED", thing("w1", version=20, generation=2))
        await until(lambda: worker.meters.waiting == 2)
    assert calls == ["add", "add"]


async def test_a_delete_that_waits_is_called_again() -> None:
    """Regression guard: there is no object any more whose change could wake it."""
    calls: list[Resource] = []

    class Waits(Quiet):
        async def delete(self, axn: Axn[Any]) -> None:
            calls.append(axn.resource)
            if len(calls) < 3:
                raise Wait("not yet")

    worker = worker_of(DelegateToController(), controller=Waits())
    stream = worker.router.primary[0]
    await lists(stream, thing("w1"))
    async with at_work(worker):
        await until(lambda: worker.handled)
        await says(stream, "DELETED", thing("w1", version=20))
        await until(lambda: len(calls) == 3)
    assert worker.meters.errors == 0


def test_a_wait_is_no_retry() -> None:
    assert not issubclass(Wait, Retry)
