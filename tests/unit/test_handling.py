"""Axn, controller and pipeline: what a handler registers and what becomes of it, without a server."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import re
import sys
import threading
import types
import weakref
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bonny import Axn, Controller, Kind, Owned, Retry, Terminal, compat
from bonny.calling import HandlerTimeout
from bonny.client.errors import Forbidden, refusal
from bonny.core.objects import Failure
from bonny.core.records import Action
from bonny.engine.reconcile import SHORTEST_WAIT, Reconcile
from bonny.errors import (
    ADVICE,
    ALSO,
    AlreadyApplied,
    BonnyError,
    ForeignObject,
    InvalidObject,
    OptionError,
    UndeclaredKind,
)
from bonny.operator import Operator
from bonny.pipeline import Pipeline, call_handler, failure_of, run_step
from bonny.resource import Resource
from bonny.run.discovery import discover
from bonny.steps.apply_descendants import ApplyDescendants, prepared
from bonny.steps.delegate import DelegateToController
from bonny.steps.finalizer import Finalizer
from bonny_dev import testing
from bonny_dev.operator_checks import check_operator
from tests.support.steps import Script
from tests.support.tokens import token_of
from tests.support.widget import Widget, widget


def config_map(name: str = "c", *, namespace: str = "") -> Resource:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {}}


@pytest.fixture
def token() -> Axn[Widget]:
    return testing.axn(widget(), version=Widget)


# --- axn --------------------------------------------------------------------------------------------------------------


def test_the_spec_is_typed_and_validated(token: Axn[Widget]) -> None:
    assert token.spec.size == 3
    with pytest.raises(InvalidObject, match=r"spec\.size"):
        testing.axn(widget(size=4711), version=Widget)


def test_descendants_come_in_order_of_their_groups_and_a_name_only_once(token: Axn[Widget]) -> None:
    token.register_descendant(config_map("late"), group=5)
    token.register_descendant(config_map("middle"))
    token.register_descendant(config_map("first"), group=-1)
    token.register_descendant({**config_map("middle"), "data": {"a": "1"}})
    assert [child["metadata"]["name"] for child in token.descendants] == ["first", "middle", "late"]
    assert token.descendants[1]["data"] == {"a": "1"}


def test_a_condition_moves_its_time_only_when_its_status_flips(token: Axn[Widget]) -> None:
    before = "2020-01-01T00:00:00Z"
    base = {"conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "lastTransitionTime": before}]}
    token.set_condition("Ready", True, message="still")
    (same,) = token.status_from(base)["conditions"]
    assert (same["lastTransitionTime"], same["message"], same["observedGeneration"]) == (before, "still", 4)

    token.set_condition("Ready", False)
    (flipped,) = token.status_from(base)["conditions"]
    assert flipped["lastTransitionTime"] > before
    assert (flipped["status"], flipped["reason"]) == ("False", "NotReady")
    assert base["conditions"][0]["status"] == "True", "the base stays as it is"


def test_status_changes_are_composed_and_other_conditions_stay() -> None:
    token = testing.axn(widget())
    token.update_status(lambda status: {**status, "seen": status.get("seen", 0) + 1})
    token.update_status(lambda status: status.update(name="x"))
    token.set_condition("Ready", None)
    status = token.status_from({"seen": 1, "conditions": [{"type": "Other", "status": "True"}]})
    assert (status["seen"], status["name"]) == (2, "x")
    assert [known["type"] for known in status["conditions"]] == ["Other", "Ready"]
    assert token.conditions["Ready"]["status"] == "Unknown"


def test_what_was_applied_cannot_be_changed_any_more(token: Axn[Widget]) -> None:
    token.mark_sent("descendants")
    with pytest.raises(AlreadyApplied, match="Widget default/w1: too late to change the descendants, already sent"):
        token.register_descendant(config_map())
    token.set_condition("Ready", True)
    token.mark_sent("status")
    with pytest.raises(AlreadyApplied, match="status"):
        token.set_condition("Ready", True)


def test_a_sealed_token_takes_nothing_more(token: Axn[Widget]) -> None:
    token.close()
    with pytest.raises(AlreadyApplied, match="is over"):
        token.register_descendant(config_map())


def test_a_handler_sees_what_the_test_says_is_there(token: Axn[Widget]) -> None:
    seeing = testing.axn(widget(), version=Widget, observed=[config_map(namespace="default")])
    assert seeing.observed(config_map()) == config_map(namespace="default")
    assert token.observed(config_map()) is None
    assert seeing.looked_at(config_map(namespace="default"))


def test_of_an_object_that_is_gone_nothing_can_be_made() -> None:
    token = testing.axn(widget(), version=Widget, action="delete")
    with pytest.raises(OptionError, match="being deleted"):
        token.register_descendant(config_map())


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
def test_a_requeue_after_an_impossible_time_is_refused(token: Axn[Widget], seconds: float) -> None:
    with pytest.raises(OptionError, match="requeue_after"):
        token.requeue_after(seconds)


async def test_advice_for_the_author_stands_in_the_status_and_not_in_the_event(token: Reconcile[Widget]) -> None:
    def fails(_: Reconcile[Any]) -> None:
        error = BonnyError("refused")
        error.add_note(f"{ALSO}the second, too")
        error.add_note(f"{ADVICE}delete it")
        raise error

    with pytest.raises(BonnyError):
        await Pipeline([fails]).run(token)

    assert token.failure is not None
    assert token.failure.message == "refused; also: the second, too; advice: delete it"
    assert [event.message for event in token.emitted] == ["refused; also: the second, too"]


NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def test_the_time_of_a_reconcile_is_aware_and_stays_the_same(token: Axn[Widget]) -> None:
    assert token.now.tzinfo is UTC
    assert token.now is token.now
    assert timedelta() <= datetime.now(UTC) - token.now < timedelta(minutes=1)
    assert testing.axn(widget(), version=Widget, now=NOW).now == NOW


async def test_a_handler_gets_the_time_of_its_test() -> None:
    class Tomorrow(Controller[Widget]):
        async def reconcile(self, axn: Axn[Widget]) -> None:
            axn.requeue_at(axn.now + timedelta(days=1))

    token = await testing.handle(Tomorrow, widget(), now=NOW)
    assert testing.assert_requeued(token, at=NOW + timedelta(days=1)) == 86_400.0


@pytest.mark.parametrize("past", [NOW, NOW - timedelta(days=1), datetime.min.replace(tzinfo=UTC)])
def test_a_requeue_at_a_time_in_the_past_is_due_at_once(past: datetime) -> None:
    token = testing.axn(widget(), version=Widget, now=NOW)
    token.requeue_at(past)
    assert token.requeue_seconds == token.requeue_wait() == SHORTEST_WAIT


def test_a_requeue_at_a_time_without_a_zone_is_refused(token: Axn[Widget]) -> None:
    message = re.escape("requeue_at(2026-03-01 12:00:00): the time has no time zone: write for example tzinfo=UTC")
    with pytest.raises(OptionError, match=f"^{message}$"):
        token.requeue_at(NOW.replace(tzinfo=None))


def test_a_slow_handler_does_not_delay_the_time_that_it_asked_for() -> None:
    began = datetime.now(UTC) - timedelta(seconds=20)
    token = testing.axn(widget(), version=Widget, now=began)
    token.requeue_at(began + timedelta(seconds=30))
    assert 9 < (token.requeue_wait() or 0.0) <= 10


def test_a_step_that_comes_back_sooner_goes_before_the_time_that_a_handler_asked_for(token: Reconcile[Widget]) -> None:
    token.requeue_at(token.now + timedelta(days=1))
    token.requeue_within(5.0)
    assert token.requeue_wait() == 5.0


def test_the_last_wish_to_run_again_counts(token: Reconcile[Widget]) -> None:
    token.requeue_at(token.now + timedelta(seconds=1))
    token.requeue_after(60.0)
    assert (token.requeue_wait(), token.requeue_time) == (60.0, None)


# --- what is sent -----------------------------------------------------------------------------------------------------


def sent(descendant: Resource, *, owner: Resource, **options: Any) -> Resource:
    token = token_of(owner, action=Action.ADD, context=Script())
    token.register_descendant(descendant, **options)
    ((made,),) = token.descendant_groups()
    kind = Owned(descendant["apiVersion"], descendant["kind"])
    return prepared(token, kind, made)


def test_a_child_carries_our_labels_and_the_owner_reference() -> None:
    made = sent(config_map(), owner=widget())
    assert made["metadata"]["namespace"] == "default"
    assert made["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "op", "bonny.dev/owner-uid": "u-1"}
    (reference,) = made["metadata"]["ownerReferences"]
    assert (reference["kind"], reference["uid"], reference["controller"]) == ("Widget", "u-1", True)


@pytest.mark.parametrize(
    ("descendant", "options"),
    [
        (config_map(namespace="elsewhere"), {}),
        ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}, {}),
        (config_map(), {"omit_owner_ref": True}),
    ],
)
def test_where_kubernetes_allows_none_or_on_request_there_is_no_owner_reference(
    descendant: Resource, options: dict[str, bool]
) -> None:
    made = sent(descendant, owner=widget(), **options)
    assert "ownerReferences" not in made["metadata"]
    assert made["metadata"]["labels"]["bonny.dev/owner-uid"] == "u-1"


def test_the_child_of_a_cluster_scoped_owner_must_name_its_namespace() -> None:
    """Regression: it was put into the namespace default, and looked for in none."""
    owner = {"apiVersion": "example.com/v1", "kind": "Region", "metadata": {"name": "r", "uid": "u-2"}}
    with pytest.raises(OptionError, match="ConfigMap c needs a namespace"):
        sent(config_map(), owner=owner)
    assert "ownerReferences" in sent(config_map(namespace="ops"), owner=owner)["metadata"]


# --- pipeline ---------------------------------------------------------------------------------------------------------


async def test_steps_run_in_order_until_one_halts(token: Axn[Widget]) -> None:
    ran: list[str] = []

    async def first(axn: Axn[Any]) -> None:
        ran.append("first")

    def second(axn: Axn[Any]) -> None:
        ran.append("second")
        axn.halt()

    await Pipeline([first, second, first]).run(token)
    assert ran == ["first", "second"]


async def test_after_a_failure_only_the_steps_that_report_run_and_the_error_names_its_step(token: Axn[Widget]) -> None:
    ran: list[str | None] = []

    class Reports:
        reports_failure = True

        def __call__(self, axn: Axn[Any]) -> None:
            ran.append(axn.failure.reason if axn.failure else None)

    def fails(axn: Axn[Any]) -> None:
        raise ValueError("hunter2")

    def never(axn: Axn[Any]) -> None:
        ran.append("never")

    with pytest.raises(ValueError, match="hunter2") as caught:
        await Pipeline([fails, never, Reports()]).run(token)
    assert caught.value.__notes__ == ["in step fails"]
    assert ran == ["HandlerFailed"]
    assert token.failure is not None
    assert "hunter2" not in token.failure.message


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Retry("later"), "Retry"),
        (Terminal("never"), "Terminal"),
        (InvalidObject("spec.size"), "Invalid"),
        (ForeignObject("theirs"), "ForeignObject"),
        (HandlerTimeout(60.0, None), "Timeout"),
        (refusal(Failure(403, "", "no"), verb="apply", resource="configmaps d/x"), "Forbidden"),
        (refusal(Failure(422, "", "no"), verb="apply", resource="configmaps d/x"), "Invalid"),
        (refusal(Failure(500, "", "no"), verb="apply", resource="configmaps d/x"), "HandlerFailed"),
        (TimeoutError("of the handler's own"), "HandlerFailed"),
        (KeyError("x"), "HandlerFailed"),
    ],
)
def test_each_failure_has_its_reason(error: Exception, reason: str) -> None:
    assert failure_of(error).reason == reason
    assert isinstance(refusal(Failure(403), verb="get", resource="x"), Forbidden)


class Undeclared(Controller[Widget]):
    async def reconcile(self, axn: Axn[Widget]) -> None:
        axn.register_descendant(config_map("one"))
        axn.register_descendant(config_map("two"))


class Raises(Controller[Widget]):
    async def reconcile(self, axn: Axn[Widget]) -> None:
        raise ValueError


class RaisesInAThread(Controller[Widget]):
    def reconcile(self, axn: Axn[Widget]) -> None:
        raise ValueError


@pytest.mark.parametrize("controller", [Undeclared, Raises, RaisesInAThread])
async def test_a_failed_handling_leaves_nothing_in_memory(controller: type[Controller[Any]]) -> None:
    """Regression: a cycle of error, traceback and frame kept everything until the garbage collector came."""

    async def handle() -> weakref.ref[Axn[Any]]:
        token = testing.axn(widget(), version=Widget)
        token._controller = controller()
        with contextlib.suppress(ValueError, UndeclaredKind):
            await Pipeline([DelegateToController(), ApplyDescendants()]).run(token)
            pytest.fail("it should have failed")
        return weakref.ref(token)

    gc.disable()
    try:
        left = await handle()
        for thread in threading.enumerate():
            if thread.name.startswith("handler"):
                thread.join()
        # What the loop still holds goes with its next round.
        await asyncio.sleep(0)
        assert left() is None
    finally:
        gc.enable()


# --- controllers ------------------------------------------------------------------------------------------------------


async def delegated(controller: Controller[Any], *, action: str = "add") -> Axn[Any]:
    token = token_of(widget(), action=Action(action), version=Widget, controller=controller)
    await run_step(token, DelegateToController())
    return token


async def test_add_and_modify_are_reconcile_unless_they_are_defined() -> None:
    class Both(compat.Controller[Widget]):
        def reconcile(self, axn: compat.Axn[Widget]) -> None:
            axn.assigns["ran"] = "reconcile"

        async def add(self, axn: compat.Axn[Widget]) -> None:
            axn.assigns["ran"] = "add"

    ran = {action: (await delegated(Both(), action=action)).assigns.get("ran") for action in Action}
    assert ran == {**dict.fromkeys(Action), "add": "add", "modify": "reconcile", "reconcile": "reconcile"}


async def test_a_handler_that_takes_too_long_is_ended_and_its_token_sealed() -> None:
    class Slow(Controller[Widget]):
        timeout = 0.01

        async def reconcile(self, axn: Axn[Widget]) -> None:
            self.token = axn
            await asyncio.Event().wait()

    controller = Slow()
    with pytest.raises(HandlerTimeout, match=r"within 0\.01 s"):
        await delegated(controller)
    with pytest.raises(AlreadyApplied):
        controller.token.register_descendant(config_map())


class PanicException(BaseException):
    """As what extensions in Rust raise."""


class Panics(Controller[Widget]):
    async def reconcile(self, axn: Axn[Widget]) -> None:
        raise PanicException("lost")


class PanicsInAThread(Controller[Widget]):
    def reconcile(self, axn: Axn[Widget]) -> None:
        raise PanicException("lost")


@pytest.mark.parametrize("controller", [Panics(), PanicsInAThread()])
async def test_what_is_no_exception_is_a_failure_of_its_handling(controller: Controller[Widget]) -> None:
    """Regression: nobody caught it, and the key stayed with a worker that was gone; from a thread it ended the loop."""
    with pytest.raises(BonnyError, match="PanicException was raised, which is not an Exception") as caught:
        await delegated(controller)
    assert "lost" not in failure_of(caught.value).message
    assert caught.value.__notes__ == ["its text: lost", "in step DelegateToController"]


async def test_a_def_handler_reaches_the_loop_by_call() -> None:
    class Sync(compat.Controller[Widget]):
        def reconcile(self, axn: compat.Axn[Widget]) -> None:
            async def answer() -> int:
                return 42

            axn.assigns["answer"] = axn.call(answer())

    assert (await delegated(Sync())).assigns == {"answer": 42}


async def test_a_loop_that_was_lent_to_a_thread_cannot_be_called_from_itself() -> None:
    """Regression: after a `def` step an `async def` handler waited for its own loop, and nothing went on any more."""
    token = testing.axn(widget(), version=Widget)
    await call_handler(lambda axn: None, token, seconds=1.0, name="a step")

    async def answer() -> int:
        return 42

    with pytest.raises(OptionError, match="await the coroutine"):
        token.call(answer())


def test_a_controller_is_of_the_version_in_its_brackets_also_through_a_base() -> None:
    class Base(Controller[Widget]):
        pass

    class Derived(Base):
        async def reconcile(self, axn: Axn[Widget]) -> None: ...

    assert Derived.version is Widget
    (kind,) = Derived.kinds("example.com")
    assert (kind.api_version, kind.plural) == ("example.com/v1", "widgets")


def test_a_controller_of_several_kinds_names_them() -> None:
    class Several(Controller[Any]):
        resource = (Widget, Kind("apps/v1", "Deployment"))

    assert [kind.resource for kind in Several.kinds("example.com")] == ["widgets.example.com", "deployments.apps"]


@pytest.mark.parametrize(
    ("name", "value"), [("reconcile_every", 0), ("max_concurrent", 0), ("timeout", -1), ("timeout", float("nan"))]
)
def test_impossible_options_are_refused_when_the_class_is_made(name: str, value: object) -> None:
    with pytest.raises(OptionError, match=name):
        type("Broken", (Controller,), {name: value})


def test_a_controller_of_nothing_and_two_of_one_kind_are_refused() -> None:
    class Nothing(Controller[Any]):
        pass

    class One(Controller[Widget]):
        pass

    class Two(Controller[Widget]):
        pass

    with pytest.raises(OptionError, match="Nothing handles nothing"):
        Operator(name="op", group="example.com", controllers=[Nothing])
    with pytest.raises(OptionError, match="One and Two both handle Widget"):
        check_operator(Operator(name="op", group="example.com", controllers=[One, Two]))


def test_a_finalize_that_no_step_calls_is_refused() -> None:
    """Regression: it was never called, and nobody said so."""

    class Cleaning(Controller[Widget]):
        async def finalize(self, axn: Axn[Widget]) -> None: ...

    with pytest.raises(OptionError, match=r"no step of op calls Cleaning.finalize: put Finalizer\(\) in `steps`"):
        check_operator(Operator(name="op", group="example.com", controllers=[Cleaning], steps=[DelegateToController()]))
    own = Cleaning.configured(steps=(Finalizer(),))
    check_operator(Operator(name="op", group="example.com", controllers=[own], steps=[DelegateToController()]))


def test_discover_finds_what_modules_define_and_not_what_they_import(monkeypatch: pytest.MonkeyPatch) -> None:
    package = types.ModuleType("found")
    package.__path__ = []

    class Here(Controller[Widget]):
        pass

    class _Shared(Controller[Widget]):
        pass

    for made in (Here, _Shared):
        made.__module__ = "found"
        setattr(package, made.__name__, made)
    package.Widget = Widget  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "found", package)
    assert discover(package) == (Here,)
