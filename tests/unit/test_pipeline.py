"""Pipeline: what becomes of errors when several steps have something to say; ordinary ways are in `test_handling`."""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable
from typing import Any, cast

import pytest

from bonny import Axn, Controller, Reason, Retry, Terminal
from bonny.calling import HandlerTimeout
from bonny.core.records import Action
from bonny.engine.reconcile import Step
from bonny.errors import BonnyError, OptionError
from bonny.events import Event
from bonny.pipeline import Pipeline, failure_of
from bonny.steps import AddManagedByLabelToDescendants, AddMissingGVK, Finalizer, Logger, SkipObservedGenerations
from bonny.steps.apply_status import ApplyStatus
from bonny.steps.delegate import DelegateToController
from bonny_dev import testing
from tests.support.raising import Frozen, Hostile, PanicException, Unprintable, UnprintablePanic
from tests.support.recorder import KeptEvents
from tests.support.tokens import token_of


def token(**fields: Any) -> Axn[Any]:
    metadata = {"name": "w1", "namespace": "default", "uid": "u-1"}
    resource = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata}
    return token_of(resource, **fields)


class Reporting:
    """A step that reports, and can fail itself."""

    reports_failure = True

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.told: list[str | None] = []

    def __call__(self, axn: Axn[Any]) -> None:
        self.told.append(None if axn.failure is None else axn.failure.reason)
        if self.errors:
            raise self.errors.pop(0)


def raising(error: Exception) -> Step:
    async def handler(axn: Axn[Any]) -> None:
        raise error

    return handler


@pytest.mark.parametrize("error", [ValueError("first"), Retry("first"), HandlerTimeout(60, None)])
async def test_a_report_that_fails_does_not_hide_the_error(error: Exception) -> None:
    """Regression: the report's own error came out. A worker then did not learn of the thread that still ran, and gave
    the key to another."""
    with pytest.raises(type(error)) as caught:
        await Pipeline([raising(error), Reporting(OSError("second"))]).run(token())

    assert caught.value is error
    assert error.__notes__ == ["in step handler", "not reported: second"]


async def test_a_terminal_error_that_could_not_be_reported_is_tried_again() -> None:
    """Nothing else would ever come back to report it."""
    with pytest.raises(OSError, match="second"):
        await Pipeline([raising(Terminal("first")), Reporting(OSError("second"))]).run(token())


async def test_a_reporting_step_that_fails_is_not_run_a_second_time() -> None:
    """Regression: each refused status was sent twice."""
    failing, other = Reporting(OSError("x"), OSError("y")), Reporting()

    with pytest.raises(OSError, match="x"):
        await Pipeline([failing, other]).run(token())

    assert (failing.told, other.told) == ([None], ["HandlerFailed"])


async def test_a_step_that_fails_after_the_report_makes_it_run_again() -> None:
    reporting = Reporting()

    with pytest.raises(ValueError, match="late"):
        await Pipeline([reporting, raising(ValueError("late"))]).run(token())

    assert reporting.told == [None, "HandlerFailed"]


async def test_a_halted_axn_passes_no_further_step_not_even_one_that_reports() -> None:
    reporting = Reporting()

    def halts(axn: Axn[Any]) -> None:
        axn.halt()
        raise ValueError("after all")

    with pytest.raises(ValueError, match="after all"):
        await Pipeline([halts, reporting]).run(token())

    assert reporting.told == []


async def test_an_object_with_options_is_a_step_and_named_by_its_class() -> None:
    error = ValueError("x")
    with pytest.raises(ValueError, match="x"):
        await Pipeline([Reporting(error)]).run(token())

    assert error.__notes__ == ["in step Reporting"]


@pytest.mark.parametrize("made", [Frozen, Hostile, Unprintable])
async def test_an_error_that_takes_no_note_stays_what_it_is(made: type[Exception]) -> None:
    """Regression: a FrozenInstanceError took its place. An error without a text is reported by its type's name."""
    error, reporting = made(), Reporting(OSError("second"))
    axn = token()

    with pytest.raises(made) as caught:
        await Pipeline([raising(error), reporting]).run(axn)

    assert caught.value is error
    assert axn.failure is not None
    assert (axn.failure.reason, made.__name__ in axn.failure.message) == ("HandlerFailed", True)


@pytest.mark.parametrize("made", [PanicException, SystemExit, GeneratorExit, UnprintablePanic])
@pytest.mark.parametrize("awaits", [True, False])
async def test_what_is_no_exception_is_reported_as_any_failure(made: type[BaseException], awaits: bool) -> None:
    async def on_the_loop(axn: Axn[Any]) -> None:
        raise made

    def plain(axn: Axn[Any]) -> None:
        raise made

    reporting = Reporting()
    with pytest.raises(BonnyError) as caught:
        await Pipeline([on_the_loop if awaits else plain, reporting]).run(token())

    assert reporting.told == ["HandlerFailed"]
    assert caught.value.__notes__[-1] == f"in step {'on_the_loop' if awaits else 'plain'}"


@pytest.mark.parametrize("base", [Retry, Terminal])
def test_an_error_of_ours_without_a_text_is_reported_by_the_name_of_its_type(base: type[Exception]) -> None:
    """Regression: what its `__str__` raised took the place of the report."""
    error = type("Mine", (Unprintable, base), {})("x")

    assert failure_of(error).message == "Mine"


@pytest.mark.parametrize("error", [ValueError("hunter2"), KeyError("hunter2"), TimeoutError("hunter2")])
def test_the_text_of_a_handlers_own_error_reaches_no_status(error: Exception) -> None:
    failure = failure_of(error)

    assert (failure.reason, "hunter2" in failure.message) == ("HandlerFailed", False)
    assert type(error).__name__ in failure.message


async def test_a_handler_that_timed_out_is_reported_although_its_token_is_sealed() -> None:
    """Regression: the report needed the token open, failed, and hid the timeout with its thread."""
    go_on = threading.Event()

    class Slow(Controller[Any]):
        timeout = 0.01

        def reconcile(self, axn: Axn[Any]) -> None:  # type: ignore[override]
            go_on.wait(10)

    reporting = Reporting()
    steps: list[Step] = [DelegateToController(), ApplyStatus(), reporting]
    try:
        with pytest.raises(HandlerTimeout) as caught:
            await Pipeline(steps).run(token(controller=Slow()))
        assert caught.value.thread is not None
        assert not caught.value.thread.done()
    finally:
        go_on.set()
    await caught.value.thread
    assert reporting.told == ["Timeout"]


async def test_a_coroutine_that_nobody_awaits_is_no_success() -> None:
    """Regression: an `async def` handler behind a plain decorator was never run, and counted as handled."""

    def decorated(handler: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(handler)
        def call(*arguments: Any) -> Any:
            return handler(*arguments)

        return call

    class Careless(Controller[Any]):
        @decorated
        async def reconcile(self, axn: Axn[Any]) -> None: ...

    with pytest.raises(OptionError, match="reconcile of Careless is a `def` that returned a coroutine"):
        await DelegateToController()(token(controller=Careless()))


# --- the end ----------------------------------------------------------------------------------------------------------


class Telling(KeptEvents):
    """A context, as far as the end of a pipeline needs one."""

    wrote = True


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("hunter2"), [("Warning", "HandlerFailed", "ValueError: see the operator's log")]),
        (Terminal("no such plan"), [("Warning", "Terminal", "no such plan")]),
        (Retry("not yet"), []),
    ],
)
async def test_what_a_handling_failed_of_is_an_event_and_asking_for_another_try_is_none(
    error: Exception, told: list[tuple[str, str, str]]
) -> None:
    place = Telling()
    axn = token(context=place)
    axn.success_event(reason="Applied")

    with pytest.raises(type(error)):
        await Pipeline([raising(error)]).run(axn)

    assert [(event.type, event.reason, event.message) for _, event in place.events] == told


async def test_events_and_last_hooks_come_at_the_end_also_when_a_step_halts() -> None:
    place = Telling()
    axn = token(context=place)
    order: list[str] = []
    axn.register_before_emit_event(lambda event, _: order.append("event") or event)
    axn.register_after_processed(lambda _: order.append("processed"))

    def halts(axn: Axn[Any]) -> None:
        axn.failure_event(reason="Halted")
        axn.halt()

    await Pipeline([halts, raising(ValueError("never"))]).run(axn)

    assert order == ["event", "processed"]
    assert [event.reason for _, event in place.events] == ["Halted"]


async def test_a_hook_that_fails_at_the_end_fails_nothing_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    axn = token(context=Telling())

    def fails(axn: Axn[Any]) -> None:
        raise ValueError("no")

    axn.register_after_processed(fails)
    await Pipeline([]).run(axn)

    assert [record.message for record in caplog.records] == ["a hook failed"]


async def test_several_failures_of_a_group_are_all_told() -> None:
    error = OptionError("ConfigMap a is not ours")
    error.add_note("also: ConfigMap b is not ours")
    error.add_note("in step ApplyDescendants")

    assert failure_of(error).message == "ConfigMap a is not ours; also: ConfigMap b is not ours"


# --- the steps that skip and fill in ----------------------------------------------------------------------------------


def modified(observed: int | None, action: Action = Action.MODIFY, **fields: Any) -> Axn[Any]:
    metadata = {"name": "w1", "namespace": "default", "uid": "u-1", "generation": 4}
    resource = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": metadata,
        "status": {"observedGeneration": observed},
    }
    return token_of(resource, action=action, **{"reasons": frozenset({Reason.CHANGED}), **fields})


@pytest.mark.parametrize(
    ("axn", "halted"),
    [
        (modified(4), True),
        (modified(3), False),
        (modified(None), False),
        (modified(4, Action.ADD), False),
        (modified(4, Action.RECONCILE), False),
        (modified(4, tries=1), False),
        (modified(4, reasons=frozenset({Reason.CHANGED, Reason.CHILD})), False),
    ],
)
def test_only_the_first_try_of_a_change_that_was_observed_is_skipped(axn: Axn[Any], halted: bool) -> None:
    SkipObservedGenerations()(axn)
    assert axn.halted is halted


def test_what_is_skipped_and_where_the_generation_is_can_be_said() -> None:
    axn = modified(4, Action.ADD)
    SkipObservedGenerations(actions=["add"])(axn)
    other = modified(3)
    other.resource["status"]["seen"] = {"generation": 4}
    SkipObservedGenerations(path=("status", "seen", "generation"))(other)
    assert (axn.halted, other.halted) == (True, True)
    with pytest.raises(OptionError, match="skips only add and modify"):
        SkipObservedGenerations(actions=["delete"])


def test_missing_types_are_filled_in_and_others_stay() -> None:
    axn = token()
    del axn.resource["apiVersion"]
    AddMissingGVK("example.com/v2", "Gadget")(axn)
    assert (axn.resource["apiVersion"], axn.resource["kind"]) == ("example.com/v2", "Widget")


def test_the_managed_by_label_is_shown_to_hooks() -> None:
    axn = testing.axn(token().resource)
    AddManagedByLabelToDescendants()(axn)
    axn.register_descendant({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "labels": {"a": "b"}}})
    axn.finish_descendants()
    testing.assert_descendant(
        axn, "Secret", "s", metadata={"labels": {"a": "b", "app.kubernetes.io/managed-by": "test"}}
    )


async def test_the_logger_tells_names_and_never_contents(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    axn = testing.axn(token().resource)

    def register(axn: Axn[Any]) -> None:
        axn.register_descendant(
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "hunter2"}}
        )
        axn.finish_descendants()
        axn.finish_status({"phase": "hunter2"})
        axn.failure_event(message="hunter2")

    await Pipeline([Logger(), register]).run(axn)

    assert [record.message for record in caplog.records] == ["processing", "descendant", "status", "event", "processed"]
    assert not any("hunter2" in str(vars(record)) for record in caplog.records)


@pytest.mark.parametrize("options", [{"name": "a.b/c"}, {"implementation": print}])
def test_a_finalizer_has_a_name_and_an_implementation_or_none_of_both(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="give both name and implementation, or neither"):
        Finalizer(**options)


# --- events -----------------------------------------------------------------------------------------------------------


def recorded(axn: Axn[Any]) -> list[tuple[str, str]]:
    return [(event.type.value, event.reason) for event in cast("Any", axn.context).recorded]


@pytest.mark.parametrize(("error", "told"), [(ValueError("x"), [("Warning", "HandlerFailed")]), (Retry("later"), [])])
async def test_a_failure_is_told_also_when_the_handler_emitted_its_events_before(
    error: Exception, told: list[tuple[str, str]]
) -> None:
    def handler(axn: Axn[Any]) -> None:
        axn.failure_event(reason="Early")
        axn.emit_events()
        raise error

    axn = testing.axn(token().resource)
    with pytest.raises(type(error)):
        await Pipeline([handler]).run(axn)

    assert recorded(axn) == [("Warning", "Early"), *told]


async def test_a_hook_that_raises_for_one_event_takes_no_other_with_it() -> None:
    """Regression: what came behind it was never told, the failure of the handling for one."""

    def hook(event: Event, _: Axn[Any]) -> Event:
        if event.reason == "First":
            raise ValueError
        return event

    def handler(axn: Axn[Any]) -> None:
        axn.register_before_emit_event(hook)
        for reason in ("First", "Second"):
            axn.failure_event(reason=reason)

    axn = testing.axn(token().resource)
    await Pipeline([handler]).run(axn)

    assert recorded(axn) == [("Warning", "Second")]
