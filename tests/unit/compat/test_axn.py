"""`compat.Axn`: hooks, sending early, and what it says of itself; without a server."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from bonny import Resource, Retry, Wait, compat
from bonny.compat import State
from bonny.core.records import Action
from bonny.engine.reconcile import Reconcile
from bonny.errors import AlreadyApplied, OptionError
from bonny.events import Event
from bonny.pipeline import Pipeline, run_step
from bonny.stages import StagedAxn, StagedController
from bonny.steps import ApplyDescendants, Logger
from bonny_dev import testing
from tests.support.recorder import KeptEvents
from tests.support.steps import CONFIG_MAP, WIDGET, Script
from tests.support.steps import token as scripted
from tests.support.tokens import token_of
from tests.support.widget import Widget, widget

RUNTIME = Path(__file__).parents[3] / "runtime"


class Parity(compat.Controller[Any]):
    """A controller whose steps are what the test is about."""


class Told(KeptEvents):
    """A context, as far as events need one."""

    wrote = True
    operator = "o"


def told(action: Action = Action.ADD, *, wrote: bool = True) -> tuple[compat.Axn[Any], Told]:
    place = Told()
    place.wrote = wrote
    metadata = {"name": "w1", "namespace": "default", "uid": "u-1"}
    resource = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata}
    return cast("compat.Axn[Any]", token_of(resource, controller=Parity(), action=action, context=place)), place


def never(_: object) -> None:
    pytest.fail("a step after one that halts")


# --- events -----------------------------------------------------------------------------------------------------------


def test_events_can_be_dropped_and_once_emitted_none_can_be_added() -> None:
    axn, place = told()
    axn.failure_event()
    axn.clear_events()
    assert State.EVENTS_EMITTED not in axn.states
    axn.emit_events()
    assert (place.events, axn.states) == ([], {State.EVENTS_EMITTED})
    with pytest.raises(AlreadyApplied, match="Widget default/w1: too late to change the events, already sent"):
        axn.failure_event()


# --- hooks ------------------------------------------------------------------------------------------------------------


def test_hooks_of_an_event_are_called_last_registered_first_and_may_change_it() -> None:
    axn, place = told()
    for word in ("first", "last"):
        axn.register_before_emit_event(
            lambda event, _, word=word: replace(event, message=f"{event.message} {word}")  # type: ignore[misc]
        )
    axn.failure_event(message="hooked")
    axn.emit_events()
    assert [event.message for _, event in place.events] == ["hooked last first"]


def test_hooks_may_change_add_and_drop_descendants_and_options_stay_with_their_objects() -> None:
    axn, _ = told()
    for name in ("kept", "dropped"):
        axn.register_descendant({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}, group=3)

    def hook(descendants: list[Resource], axn: compat.Axn[Any]) -> list[Resource]:
        kept = [{**known, "data": {}} for known in descendants if known["metadata"]["name"] == "kept"]
        return [*kept, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "new"}}]

    axn.register_before_apply_descendants(hook)
    axn.before_apply_descendants()
    groups = [
        [(known.group, known.resource["metadata"]["name"]) for known in group] for group in axn.descendant_groups()
    ]
    assert groups == [[(0, "new")], [(3, "kept")]]
    assert axn.descendants[1]["data"] == {}


async def test_a_hook_that_must_be_awaited_is_refused() -> None:
    axn, _ = told()

    async def hook(axn: compat.Axn[Any]) -> None: ...

    with pytest.raises(OptionError, match="the hook hook is an `async def`"):
        axn.register_after_processed(cast("Any", hook))


async def test_every_last_hook_is_called_whatever_the_others_do() -> None:
    axn, _ = told()
    called: list[str] = []

    def fails(axn: compat.Axn[Any]) -> None:
        called.append("fails")
        raise SystemExit("no")

    axn.register_after_processed(lambda _: called.append("first"))
    axn.register_after_processed(fails)
    await Pipeline([]).run(axn)
    assert called == ["fails", "first"]


# --- at the end of a pipeline -----------------------------------------------------------------------------------------


async def test_events_and_last_hooks_come_at_the_end_also_when_a_step_halts() -> None:
    axn, place = told()
    order: list[str] = []
    axn.register_before_emit_event(lambda event, _: order.append("event") or event)
    axn.register_after_processed(lambda _: order.append("processed"))

    def halts(axn: compat.Axn[Any]) -> None:
        axn.failure_event(reason="Halted")
        axn.halt()

    await Pipeline([halts, never]).run(axn)

    assert order == ["event", "processed"]
    assert [event.reason for _, event in place.events] == ["Halted"]


async def test_a_hook_that_fails_at_the_end_fails_nothing_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    axn, _ = told()

    def fails(axn: compat.Axn[Any]) -> None:
        raise ValueError("no")

    axn.register_after_processed(fails)
    await Pipeline([]).run(axn)

    assert [record.message for record in caplog.records] == ["a hook failed"]


def recorded(axn: Reconcile[Any]) -> list[tuple[str, str]]:
    return [(event.type.value, event.reason) for event in cast("Any", axn.context).recorded]


@pytest.mark.parametrize(("error", "told"), [(ValueError("x"), [("Warning", "HandlerFailed")]), (Retry("later"), [])])
async def test_a_failure_is_told_also_when_the_handler_emitted_its_events_before(
    error: Exception, told: list[tuple[str, str]]
) -> None:
    def handler(axn: compat.Axn[Any]) -> None:
        axn.failure_event(reason="Early")
        axn.emit_events()
        raise error

    axn = testing.axn(widget(), axn_class=compat.Axn)
    with pytest.raises(type(error)):
        await Pipeline([handler]).run(axn)

    assert recorded(axn) == [("Warning", "Early"), *told]


async def test_a_hook_that_raises_for_one_event_takes_no_other_with_it() -> None:
    """Regression: what came behind it was never told, the failure of the handling for one."""

    def hook(event: Event, _: compat.Axn[Any]) -> Event:
        if event.reason == "First":
            raise ValueError
        return event

    def handler(axn: compat.Axn[Any]) -> None:
        axn.register_before_emit_event(hook)
        for reason in ("First", "Second"):
            axn.failure_event(reason=reason)

    axn = testing.axn(widget(), axn_class=compat.Axn)
    await Pipeline([handler]).run(axn)

    assert recorded(axn) == [("Warning", "Second")]


# --- with the steps ---------------------------------------------------------------------------------------------------


LIVE = widget() | {"metadata": {**widget()["metadata"], "resourceVersion": "7", "generation": 4}}
CHILD = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "uid": "u-2", "resourceVersion": "8"}}


class OwnsConfigMaps(compat.Controller[Any]):
    resource = WIDGET
    owns = (CONFIG_MAP,)


async def test_a_hook_can_add_the_only_descendant() -> None:
    script = Script(CHILD)
    axn = scripted(script, LIVE, controller=OwnsConfigMaps())
    added = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    axn.register_before_apply_descendants(lambda descendants, _: [*descendants, added])

    await run_step(axn, ApplyDescendants())

    assert [verb for verb, _ in script.requests] == ["apply"]


# --- sending early, in the test of a handler --------------------------------------------------------------------------


async def test_what_is_sent_early_is_noted_and_nothing_is_sent() -> None:
    class Early(compat.Controller[Widget]):
        async def reconcile(self, axn: compat.Axn[Widget]) -> None:
            axn.set_condition("Ready", False)
            await axn.safe_apply_status()
            await axn.apply_descendants()

    token = await testing.handle(Early, widget())
    assert token.states == {State.STATUS_APPLIED, State.DESCENDANTS_APPLIED}
    with pytest.raises(AlreadyApplied):
        token.set_condition("Ready", True)


async def test_without_a_status_nothing_is_sent_early_and_one_can_be_set_later() -> None:
    """Regression: here it could not, and in the operator it could."""

    class Early(compat.Controller[Widget]):
        async def reconcile(self, axn: compat.Axn[Widget]) -> None:
            await axn.apply_status()
            axn.set_condition("Ready", True)

    testing.assert_condition(await testing.handle(Early, widget()), "Ready")


async def test_a_stage_counts_although_the_status_was_applied_before() -> None:
    class Both(compat.Axn[Widget], StagedAxn[Widget]):
        """What both extras add."""

    class Early(StagedController[Widget]):
        stages = ("DatabaseReady",)
        axn_class = Both

        async def reconcile(self, axn: Both) -> None:  # type: ignore[override]
            axn.set_condition("Started", True)
            await axn.apply_status()
            with axn.stage("DatabaseReady"):
                raise Wait("it is starting")

    token = await testing.handle(Early, widget())
    reported = {each["type"]: each for each in token.with_own_conditions({})["conditions"]}
    assert reported["DatabaseReady"]["message"] == "it is starting"


# --- beside the core --------------------------------------------------------------------------------------------------


async def test_an_axn_says_what_was_sent_and_of_which_operator_it_is() -> None:
    class Says(compat.Controller[Widget]):
        async def reconcile(self, axn: compat.Axn[Widget]) -> None:
            axn.assigns["said"] = (axn.identifier(), axn.operator, axn.states)
            axn.private["mine"] = axn.options

    token = await testing.handle(Says, widget())
    assert cast("compat.Axn[Any]", token).assigns["said"] == (
        ("default/w1", "example.com/v1", "Widget/add"),
        "test",
        frozenset(),
    )
    assert cast("compat.Axn[Any]", token).private == {"mine": token.controller.options}


async def test_an_early_write_that_fails_does_not_count_as_a_failed_reconcile() -> None:
    """The handler may catch the error; only what it raises itself is a failure."""
    script = Script(ValueError("no"))
    axn = cast("compat.Axn[Any]", scripted(script, LIVE, controller=OwnsConfigMaps()))
    axn.set_condition("Ready", True)
    with pytest.raises(ValueError, match="no"):
        await axn.apply_status()
    assert (axn.failure, axn.states, len(script.requests)) == (None, frozenset(), 1)


async def test_the_last_hook_comes_before_the_last_line_of_the_logger(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    axn, lines = told()[0], list[int]()

    def step(axn: compat.Axn[Any]) -> None:
        axn.register_after_processed(lambda _: lines.append(len(caplog.records)))

    await Pipeline([Logger(), step]).run(axn)
    assert ([record.message for record in caplog.records], lines) == (["processing", "processed"], [1])


def test_only_users_name_the_extra() -> None:
    """So that a repository without the folder is complete."""
    naming = [
        path
        for path in RUNTIME.rglob("*.py")
        if not path.is_relative_to(RUNTIME / "bonny" / "compat") and re.search(r"\bcompat\b", path.read_text("utf-8"))
    ]
    assert naming == []
