"""Finalizer: on which objects it is set, when its implementation runs, and what is sent; without a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from bonny import Axn, Controller, Kind, Owned, Resource
from bonny.client.errors import ApiError, Conflict, refusal
from bonny.core.fights import AT_ONCE
from bonny.core.objects import Failure, Item
from bonny.core.records import Action
from bonny.engine.reconcile import Reconcile
from bonny.errors import InvalidObject, Retry
from bonny.resource import Key
from bonny.steps import Finalizer
from tests.support.steps import Script, conflict, owned, token
from tests.support.widget import Widget, widget

NAME = "example.com/op"
OTHER = "example.com/other"
DELETED_AT = "2026-01-01T00:00:00Z"
REFUSED_TEST = refusal(
    Failure(422, "Invalid", "the server rejected our request due to an error in our request"),
    verb="patch",
    resource="widgets default/w1",
)


class Finalizing(Controller[Widget]):
    """Records the requests that were sent before its `finalize` ran."""

    owns = (Owned("v1", "ConfigMap"),)

    def __init__(self) -> None:
        self.before: list[list[str]] = []

    async def reconcile(self, axn: Axn[Widget]) -> None: ...

    async def finalize(self, axn: Reconcile[Widget]) -> None:  # type: ignore[override]
        self.before.append(verbs(axn.context))


class Noting(Script):
    """A script that records which deletions the owner is to wait for."""

    def __init__(self, *answers: Resource | Exception | None, children: list[Resource] | None = None) -> None:
        super().__init__(*answers, children=children or [])
        self.awaited: list[str] = []

    @contextmanager
    def deleting(self, kind: Kind, key: Key, uid: str) -> Iterator[None]:
        self.awaited.append(f"{kind.kind} {uid}")
        yield


def verbs(script: Any) -> list[str]:
    return [verb for verb, _ in script.requests]


def live(*finalizers: str, version: str = "7", size: object = 3, deleted: bool = False) -> Resource:
    """The Widget as the API server has it in that version."""
    made = widget(size=size)
    metadata = {**made["metadata"], "resourceVersion": version, "finalizers": list(finalizers)}
    return {**made, "metadata": metadata | ({"deletionTimestamp": DELETED_AT} if deleted else {})}


def child() -> Resource:
    """A ConfigMap that the controller applied."""
    labels = {"bonny.dev/owner-uid": "u-1"}
    metadata = {"name": "c", "namespace": "default", "uid": "u-c", "resourceVersion": "5", "labels": labels}
    return owned({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {}}, {"f:data": {}})


async def finalized(script: Script, *finalizers: str) -> tuple[Reconcile[Any], Finalizing]:
    """Run the step on an object under deletion that has these finalizers."""
    controller = Finalizing()
    axn = token(script, live(*finalizers, deleted=True), controller=controller, action=Action.FINALIZE)
    await Finalizer()(axn)
    return axn, controller


async def added(script: Script, step: Finalizer | None = None, *, size: object = 3) -> Reconcile[Any]:
    """Run the step on an object that has no finalizer."""
    axn = token(script, live(size=size), controller=Finalizing())
    await (step or Finalizer())(axn)
    return axn


# --- adding it --------------------------------------------------------------------------------------------------------


async def test_an_object_gets_the_finalizer_before_its_handler_runs() -> None:
    script = Script(live(NAME, version="8"))

    axn = await added(script)

    assert script.requests == [
        (
            "patch",
            [
                {"op": "test", "path": "/metadata/uid", "value": "u-1"},
                {"op": "test", "path": "/metadata/finalizers", "value": None},
                {"op": "add", "path": "/metadata/finalizers", "value": [NAME]},
            ],
        )
    ]
    assert not axn.halted


@pytest.mark.parametrize("refused", [conflict(), REFUSED_TEST])
async def test_a_patch_that_another_write_refuted_is_decided_again_on_the_object_as_it_is_then(
    refused: Exception,
) -> None:
    """The API server answers 409, or 422 where a test of the patch fails."""
    script = Script(refused, live(OTHER, version="8"), live(OTHER, NAME, version="9"))

    await added(script)

    assert verbs(script) == ["patch", "get", "patch"]
    assert script.requests[-1][1][1:] == [
        {"op": "test", "path": "/metadata/finalizers", "value": [OTHER]},
        {"op": "add", "path": "/metadata/finalizers", "value": [OTHER, NAME]},
    ]


async def test_a_finalizer_that_the_object_has_by_then_is_not_added_again() -> None:
    script = Script(conflict(), live(NAME, version="8"))

    await added(script)

    assert verbs(script) == ["patch", "get"]


async def test_the_step_fails_after_three_conflicts() -> None:
    script = Script(conflict(), live(version="8"), conflict(), live(version="9"), conflict())

    with pytest.raises(Conflict):
        await added(script)

    assert verbs(script) == ["patch", "get", "patch", "get", "patch"]


@pytest.mark.parametrize("needed", [True, False])
async def test_the_finalizer_is_added_only_where_the_condition_holds(needed: bool) -> None:
    script = Script(live(OTHER, version="8"))

    await added(script, Finalizer(OTHER, implementation=lambda _: None, when=lambda _: needed))

    assert verbs(script) == (["patch"] if needed else [])


async def test_an_object_that_does_not_fit_its_schema_gets_no_finalizer() -> None:
    script = Script()

    with pytest.raises(InvalidObject):
        await added(script, size="large")

    assert script.requests == []


async def test_an_object_that_is_gone_gets_no_finalizer() -> None:
    """Its `delete` runs instead; a patch would fail, and `delete` would never run."""
    script = Script()
    axn = token(script, live(), controller=Finalizing(), action=Action.DELETE)

    await Finalizer()(axn)

    assert (script.requests, axn.halted) == ([], False)


async def test_a_finalizer_that_another_writer_removes_each_time_is_added_after_a_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bonny.steps.finalizer.time", SimpleNamespace(monotonic=lambda: 1000.0))
    script = Script(*[live(NAME, version="8")] * AT_ONCE)
    for _ in range(AT_ONCE):
        axn = await added(script)
    assert [event.reason for event in axn.events] == ["RepeatedDrift"]

    with pytest.raises(Retry, match=f"another writer removes the finalizer {NAME} each time") as caught:
        await added(script)

    assert caught.value.after == 1.0
    assert len(script.requests) == AT_ONCE


# --- removing it ------------------------------------------------------------------------------------------------------


async def test_the_implementation_runs_before_the_children_are_deleted() -> None:
    """It may need them, for example a Secret with the credentials of what it cleans up."""
    script = Script(live(NAME, deleted=True), None, live(version="8", deleted=True), children=[child()])

    _, controller = await finalized(script, NAME)

    assert controller.before == [["get"]]
    assert verbs(script) == ["get", "delete", "patch"]


async def test_the_implementation_runs_although_the_condition_holds_no_longer() -> None:
    ran: list[str] = []
    script = Script(live(OTHER, deleted=True), live(version="8", deleted=True))
    axn = token(script, live(OTHER, deleted=True), controller=Finalizing(), action=Action.FINALIZE)

    await Finalizer(OTHER, implementation=lambda axn: ran.append(axn.uid), when=lambda _: False)(axn)

    assert ran == ["u-1"]
    assert verbs(script) == ["get", "patch"]


async def test_the_finalizer_stays_while_the_children_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Children without an owner reference would stay for ever."""
    script = Script(live(NAME, deleted=True))
    unknown: list[tuple[Owned, Item]] | None = None
    monkeypatch.setattr(script, "children", lambda _: unknown)

    with pytest.raises(Retry, match="the children of Widget default/w1 are unknown: a stream is not in sync"):
        await finalized(script, NAME)

    assert verbs(script) == ["get"]


async def test_no_later_step_runs_for_an_object_that_was_gone_before_its_implementation_ran() -> None:
    script = Script({**live(NAME), "metadata": {**live(NAME)["metadata"], "uid": "u-new"}})

    axn, controller = await finalized(script, NAME)

    assert (controller.before, axn.halted) == ([], True)
    assert verbs(script) == ["get"]


@pytest.mark.parametrize(("left", "awaited"), [((), ["Widget u-1"]), ((OTHER,), [])])
async def test_an_object_is_gone_with_its_last_finalizer_and_its_key_waits_for_that_event(
    left: tuple[str, ...], awaited: list[str]
) -> None:
    """Otherwise the key would come back before the watch reports the deletion, and `finalize` would run twice."""
    script = Noting(live(NAME, *left, deleted=True), live(*left, version="8", deleted=True))

    axn, _ = await finalized(script, NAME, *left)

    assert script.awaited == awaited
    assert axn.halted is bool(awaited)


async def test_a_finalizer_that_cannot_be_removed_fails_the_reconcile() -> None:
    forbidden = refusal(Failure(403, "Forbidden", "no"), verb="patch", resource="widgets default/w1")

    with pytest.raises(ApiError, match="cannot patch widgets default/w1"):
        await finalized(Script(live(NAME, deleted=True), forbidden), NAME)
