"""Axn: corners of what handlers register; the ordinary ways are in `test_handling`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

from bonny import Axn, Resource, Retry
from bonny.core.records import Action
from bonny.engine.reconcile import Reconcile
from bonny.errors import AlreadyApplied, OptionError
from tests.support.recorder import KeptEvents
from tests.support.tokens import token_of

BEFORE = "2020-01-01T00:00:00Z"


def token(**given: Any) -> Reconcile[Any]:
    metadata = {"name": "w1", "namespace": "default", "uid": "u-1"}
    resource = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata}
    return token_of(resource, **given)


def child(**metadata: str) -> Resource:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", **metadata}}


def ready(status: str) -> Resource:
    known = {"type": "Ready", "status": status, "reason": "Ready", "message": "", "lastTransitionTime": BEFORE}
    return {"conditions": [known]}


# --- conditions -------------------------------------------------------------------------------------------------------


def test_a_condition_that_was_changed_and_changed_back_did_not_move() -> None:
    """Regression: `Ready` set to False first and to True at the end got a new time, and a write, at each handling."""
    axn = token()
    axn.set_condition("Ready", False, message="at work")
    axn.set_condition("Ready", True)

    assert axn.status_from(ready("True")) == ready("True")


def test_a_condition_that_was_changed_twice_and_ends_elsewhere_did_move() -> None:
    axn = token()
    axn.set_condition("Ready", True)
    axn.set_condition("Ready", False)

    (condition,) = axn.status_from(ready("True"))["conditions"]
    assert (condition["status"], condition["lastTransitionTime"] > BEFORE) == ("False", True)


def test_a_time_that_a_handler_sets_itself_is_its_own_business() -> None:
    axn = token()
    beat = {"type": "Alive", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    axn.update_status(lambda status: {**status, "conditions": [beat]})

    assert axn.status_from({"conditions": [{**beat, "lastTransitionTime": BEFORE}]})["conditions"] == [beat]


@pytest.mark.parametrize("status", [True, False, None])
@pytest.mark.parametrize("kind", ["Ready", "example.com/Ready", "with-hyphens.and.dots"])
def test_a_default_reason_is_one_that_the_api_server_takes(kind: str, status: bool | None) -> None:
    """Regression: the type was taken as it is, and a type with a domain made the server refuse the whole status."""
    axn = token()
    axn.set_condition(kind, status)

    assert re.fullmatch(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?", axn.conditions[kind]["reason"])


def test_a_message_is_cut_to_what_the_api_server_takes() -> None:
    axn = token()
    axn.set_condition("Ready", False, message="x" * 100_000)

    assert len(axn.conditions["Ready"]["message"]) == 32_768


@pytest.mark.parametrize("status", ["True", "", 2])
def test_a_status_that_is_none_of_three_is_refused_in_one_sentence(status: Any) -> None:
    with pytest.raises(OptionError, match=r"the status of condition Ready is .*: use True, False or None"):
        token().set_condition("Ready", status)


def test_changes_leave_the_base_untouched_however_deep_they_reach() -> None:
    axn = token()
    axn.update_status(lambda status: status["a"]["b"].append(1))
    axn.update_status(lambda status: {})
    base = {"a": {"b": []}}

    assert axn.status_from(base) == {}
    assert base == {"a": {"b": []}}


# --- descendants ------------------------------------------------------------------------------------------------------


def test_with_and_without_the_owners_namespace_a_name_is_the_same() -> None:
    """Regression: both were applied at the same time, and undid each other."""
    axn = token()
    axn.register_descendant(child())
    axn.register_descendant(child(namespace="default"))
    axn.register_descendant(child(namespace="elsewhere"))

    assert [known["metadata"].get("namespace") for known in axn.descendants] == ["default", "elsewhere"]


@pytest.mark.parametrize("lacking", ["apiVersion", "kind", "metadata"])
def test_a_descendant_without_a_name_or_type_is_refused(lacking: str) -> None:
    axn = token()

    with pytest.raises(OptionError, match=r"needs apiVersion, kind and metadata\.name"):
        axn.register_descendant({name: value for name, value in child().items() if name != lacking})

    assert axn.descendants == []


# --- times ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [-1.0, float("nan"), float("inf")])
def test_a_retry_after_an_impossible_time_is_refused(after: float) -> None:
    """Regression: NaN got into the order of the queue, and no key of the controller was ever retried again."""
    with pytest.raises(OptionError, match="Retry"):
        Retry(after=after)


# --- calls from threads -----------------------------------------------------------------------------------------------


async def nothing() -> int:
    return 42


def test_a_call_outside_of_a_thread_is_refused_and_leaves_nothing_unawaited() -> None:
    with pytest.raises(OptionError, match="in an `async def` handler, await"):
        token().call(nothing())


async def test_a_thread_whose_time_is_over_can_call_nothing_more() -> None:
    """Regression: only registering was refused; a handler that timed out went on writing through `axn.call`."""
    axn = token()
    axn.give_loop(asyncio.get_running_loop())
    assert await asyncio.to_thread(lambda: axn.call(nothing())) == 42

    axn.close()

    with pytest.raises(AlreadyApplied, match="is over"):
        await asyncio.to_thread(lambda: axn.call(nothing()))


@pytest.mark.parametrize(
    "register",
    [
        lambda axn: axn.update_status(lambda status: {}),
        lambda axn: axn.set_condition("Ready", True),
        lambda axn: axn.register_descendant(child()),
    ],
)
def test_a_sealed_token_takes_nothing_of_any_sort(register: Callable[[Axn[Any]], None]) -> None:
    axn = token()
    axn.close()

    with pytest.raises(AlreadyApplied):
        register(axn)

    assert (axn.status, axn.descendants) == ({}, [])


# --- events -----------------------------------------------------------------------------------------------------------


class Told(KeptEvents):
    """A context, as far as events need one."""

    wrote = True
    operator = "o"


def told(action: Action = Action.ADD, *, wrote: bool = True) -> tuple[Reconcile[Any], Told]:
    place = Told()
    place.wrote = wrote
    metadata = {"name": "w1", "namespace": "default", "uid": "u-1"}
    resource = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata}
    return token_of(resource, action=action, context=place), place


def emit(axn: Reconcile[Any]) -> None:
    for call in axn.emissions():
        call()


def reasons(place: Told) -> list[str]:
    return [event.reason for _, event in place.events]


def test_a_success_is_told_only_if_something_changed() -> None:
    for wrote, expected in ((True, ["ReconcileSucceeded", "Free"]), (False, ["Free"])):
        axn, place = told(wrote=wrote)
        axn.success_event()
        axn.register_event(None, "Normal", "Free", "Add", "whatever happens")
        emit(axn)
        assert reasons(place) == expected


def test_a_deletion_is_a_change() -> None:
    axn, place = told(Action.DELETE, wrote=False)
    axn.success_event(message="cleaned up")
    emit(axn)
    assert [(name, event.reason, event.message) for name, event in place.events] == [
        ("Widget default/w1", "DeleteSucceeded", "cleaned up")
    ]


def test_events_have_the_type_of_what_they_tell_and_the_action() -> None:
    axn, _ = told(Action.MODIFY)
    axn.success_event(reason="Grown")
    axn.failure_event(message="too large")
    assert [(event.type, event.reason, event.action, event.message) for event in axn.events] == [
        ("Normal", "Grown", "Reconcile", "Reconcile succeeded"),
        ("Warning", "ReconcileFailed", "Reconcile", "too large"),
    ]


def test_equal_events_of_a_creation_and_of_what_follows_it_have_one_action() -> None:
    """Regression: one new object had the same event twice, as Add and as Reconcile."""
    events = [told(action)[0] for action in (Action.ADD, Action.MODIFY, Action.RECONCILE)]
    for axn in events:
        axn.success_event(reason="Published", message="size 3")

    assert len({axn.events[0] for axn in events}) == 1


@pytest.mark.parametrize("action", [Action.DELETE, Action.FINALIZE])
def test_an_event_of_an_end_has_the_action_of_its_own(action: Action) -> None:
    axn, _ = told(action)
    axn.success_event()
    assert axn.events[0].action == action.capitalize()


def test_an_event_of_no_known_type_is_refused() -> None:
    axn, _ = told()
    with pytest.raises(OptionError, match="the type of event Grown is 'Info': use 'Normal' or 'Warning'"):
        axn.register_event(None, "Info", "Grown", "Add", "x")


# --- descendants ------------------------------------------------------------------------------------------------------


def test_to_register_many_descendants_takes_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: each registration compared all earlier ones. 4,000 children kept the event loop for a minute, longer
    than a lease lasts."""
    axn, compared = token(), []
    named = type(axn)._named
    monkeypatch.setattr(type(axn), "_named", lambda self, resource: compared.append(resource) or named(self, resource))

    for number in range(200):
        axn.register_descendant(child(name=f"c-{number}"))

    assert len(compared) == 200


def test_a_descendant_has_the_name_that_it_has_when_it_is_applied() -> None:
    """Otherwise a child that is renamed after its registration would be applied by one name and kept by the other."""
    axn, renamed = token(), child(name="before")
    axn.register_descendant(renamed)
    renamed["metadata"]["name"] = "after"
    axn.register_descendant(child(name="after", namespace="default"))

    ((only,),) = axn.descendant_groups()
    assert only.resource["metadata"] == {"name": "after", "namespace": "default"}
    assert axn.descendants == [only.resource]


# --- what a handler sees ----------------------------------------------------------------------------------------------


def test_a_handler_is_offered_24_names_and_no_more() -> None:
    """Editors list these after `axn.`; what steps and tests need besides has `Reconcile`."""
    names = {*dir(Axn), *(each.name for each in fields(Axn))}
    assert {name for name in names if not name.startswith("_")} == {
        *("action", "resource", "spec", "reasons", "tries", "now", "key", "uid", "client", "tasks"),
        *("observed", "children", "related", "call"),
        *("register_descendant", "keep_descendant", "update_status", "set_condition"),
        *("requeue_after", "requeue_at", "halt", "success_event", "failure_event", "register_event"),
    }
    assert not {name for name in vars(token()) if not name.startswith("_")} - names


def test_what_is_called_at_the_end_is_called_the_last_one_first() -> None:
    axn, seen = token(context=Told()), list[str]()
    axn.at_end(lambda ended: seen.append(f"first {ended.key}"))
    axn.at_end(lambda _: seen.append("last"))

    for call in axn.last_calls():
        call()

    assert seen == ["last", "first default/w1"]


def test_a_step_that_comes_back_later_leaves_the_time_that_a_handler_asked_for() -> None:
    axn = token()
    axn.requeue_after(5.0)
    axn.requeue_within(30.0)
    assert axn.requeue_wait() == 5.0
    axn.requeue_within(2.0)
    assert axn.requeue_wait() == 2.0
