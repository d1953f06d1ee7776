"""Pipeline: what becomes of errors when several steps have something to say; ordinary ways are in `test_handling`."""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from bonny import Axn, Controller, Retry, Terminal
from bonny.calling import HandlerTimeout
from bonny.engine.reconcile import Reconcile, Step
from bonny.errors import BonnyError, OptionError
from bonny.pipeline import Pipeline, failure_of
from bonny.steps import Finalizer, Logger
from bonny.steps.apply_status import ApplyStatus
from bonny.steps.delegate import DelegateToController
from bonny_dev import testing
from tests.support.raising import Frozen, Hostile, PanicException, Unprintable, UnprintablePanic
from tests.support.recorder import KeptEvents
from tests.support.tokens import token_of


def token(**fields: Any) -> Reconcile[Any]:
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


async def test_what_is_called_at_the_end_comes_after_the_events_also_when_a_step_halts() -> None:
    place = Telling()
    axn = token(context=place)
    axn.at_end(lambda ended: order.extend([f"{event.reason} is emitted" for event in ended.emitted]))
    order: list[str] = []

    def halts(axn: Axn[Any]) -> None:
        axn.failure_event(reason="Halted")
        axn.halt()

    await Pipeline([halts, raising(ValueError("never"))]).run(axn)

    assert order == ["Halted is emitted"]
    assert [event.reason for _, event in place.events] == ["Halted"]


async def test_several_failures_of_a_group_are_all_told() -> None:
    error = OptionError("ConfigMap a is not ours")
    error.add_note("also: ConfigMap b is not ours")
    error.add_note("in step ApplyDescendants")

    assert failure_of(error).message == "ConfigMap a is not ours; also: ConfigMap b is not ours"


# --- steps ------------------------------------------------------------------------------------------------------------


async def test_the_logger_tells_names_and_never_contents(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    axn = testing.axn(token().resource)

    def register(axn: Reconcile[Any]) -> None:
        axn.register_descendant(
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "hunter2"}}
        )
        axn.mark_sent("descendants")
        axn.stored = {"status": {"phase": "hunter2"}}
        axn.failure_event(message="hunter2")

    await Pipeline([Logger(), register]).run(axn)

    assert [record.message for record in caplog.records] == ["processing", "descendant", "status", "event", "processed"]
    assert not any("hunter2" in str(vars(record)) for record in caplog.records)


@pytest.mark.parametrize("options", [{"name": "a.b/c"}, {"implementation": print}])
def test_a_finalizer_has_a_name_and_an_implementation_or_none_of_both(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="give both name and implementation, or neither"):
        Finalizer(**options)
