"""Stages: the parts of a long set-up as conditions, in order; no server."""

from __future__ import annotations

import threading
from typing import Any, ClassVar

import pytest

from bonny import Controller, Kind, Resource, Retry, Spec, Version, Wait
from bonny.calling import HandlerTimeout
from bonny.errors import OptionError
from bonny.pipeline import Pipeline
from bonny.stages import StagedAxn, StagedController
from bonny.steps import ApplyStatus, DelegateToController
from bonny_dev import testing
from tests.support.steps import Script, owned, token
from tests.support.widget import Widget, widget

STAGES = ("DatabaseReady", "SchemaReady", "AppReady")
LONG_AGO = "2020-01-01T00:00:00Z"


class SetUp(StagedController[Widget]):
    """Three stages; what the second raises."""

    stages = STAGES
    error: ClassVar[BaseException | None] = None

    async def reconcile(self, axn: StagedAxn[Widget]) -> None:
        with axn.stage("DatabaseReady"):
            pass
        with axn.stage("SchemaReady"):
            if self.error is not None:
                raise self.error
        with axn.stage("AppReady"):
            pass


def shown(conditions: dict[str, Resource]) -> dict[str, tuple[str, str, str]]:
    return {
        name: (each["status"], each["reason"], each["message"]) for name, each in conditions.items() if name in STAGES
    }


DONE = ("True", "DatabaseReady", "")
LATER = ("Unknown", "WaitingForSchemaReady", "")


# --- what a user tests ------------------------------------------------------------------------------------------------


async def test_each_stage_that_ends_becomes_a_true_condition() -> None:
    handled = await testing.handle(SetUp, widget())

    assert shown(handled.conditions) == {name: ("True", name, "") for name in STAGES}


async def test_a_stage_that_waits_is_false_and_later_ones_are_unknown() -> None:
    handled = await testing.handle(SetUp.configured(error=Wait("the schema is migrated")), widget())

    testing.assert_condition(handled, "SchemaReady", False, reason="Waiting", message="the schema is migrated")
    assert shown(handled.conditions) == {
        "DatabaseReady": DONE,
        "SchemaReady": ("False", "Waiting", "the schema is migrated"),
        "AppReady": LATER,
    }


# --- what is written --------------------------------------------------------------------------------------------------


async def written(
    controller: Controller[Any], status: Resource | None = None, *, fails: type[Exception] | None = None
) -> dict[str, Resource]:
    """The conditions that a reconcile writes over `status`."""
    before = widget()
    if status is not None:
        fields = {f'k:{{"type":"{each["type"]}"}}': {} for each in status["conditions"]}
        entry = {"f:status": {"f:conditions": fields}}
        before = owned({**before, "status": status}, entry, subresource="status")
    after = {**before, "metadata": {**before["metadata"], "resourceVersion": "8"}}
    script = Script(after)
    pipeline = Pipeline([DelegateToController(), ApplyStatus()])
    if fails is None:
        await pipeline.run(token(script, before, controller=controller))
    else:
        with pytest.raises(fails):
            await pipeline.run(token(script, before, controller=controller))
    return {each["type"]: each for each in script.requests[0][1]["status"]["conditions"]}


@pytest.mark.parametrize(
    ("error", "reason", "message"),
    [
        (Retry("the schema is locked"), "Retry", "the schema is locked"),
        (ValueError("hunter2"), "HandlerFailed", "ValueError: see the operator's log"),
    ],
)
async def test_a_stage_that_fails_has_the_reason_of_the_failure(error: Exception, reason: str, message: str) -> None:
    conditions = await written(SetUp.configured(error=error)(), fails=type(error))

    assert shown(conditions) == {"DatabaseReady": DONE, "SchemaReady": ("False", reason, message), "AppReady": LATER}
    assert (conditions["Reconciled"]["reason"], conditions["Reconciled"]["message"]) == (reason, message)


async def test_a_stage_that_is_a_summary_does_not_claim_success_for_a_reconcile_that_fails_afterwards() -> None:
    """Regression: the condition of a stage `Ready` stayed True when the descendants were refused."""

    class Refused(StagedController[Widget]):
        stages = ("Ready",)

        async def reconcile(self, axn: StagedAxn[Widget]) -> None:
            with axn.stage("Ready"):
                pass
            raise Retry("the descendants are refused")

    conditions = await written(Refused(), fails=Retry)

    assert [conditions[name]["status"] for name in ("Ready", "Reconciled")] == ["False", "False"]
    assert conditions["Ready"]["reason"] == "Retry"


async def test_a_thread_that_hangs_in_a_stage_is_named_by_it_and_cannot_pass_it_later() -> None:
    go_on, ended = threading.Event(), threading.Event()

    class Hangs(SetUp):
        timeout = 0.01

        def reconcile(self, axn: StagedAxn[Widget]) -> None:  # type: ignore[override]
            try:
                with axn.stage("DatabaseReady"):
                    go_on.wait(10)
            finally:
                ended.set()

    script = Script({**widget(), "metadata": {**widget()["metadata"], "resourceVersion": "8"}})
    axn = token(script, controller=Hangs())
    try:
        with pytest.raises(HandlerTimeout):
            await Pipeline([DelegateToController(), ApplyStatus()]).run(axn)
    finally:
        go_on.set()
    assert shown(axn.conditions)["DatabaseReady"][:2] == ("False", "Timeout")
    assert ended.wait(10)
    assert shown(axn.conditions)["DatabaseReady"][:2] == ("False", "Timeout")


@pytest.mark.parametrize("error", [Wait("not yet"), Retry("not yet")])
@pytest.mark.parametrize("before", ["True", "False", None])
async def test_a_stage_called_ready_is_not_claimed_by_a_reconcile_that_is_not_complete(
    error: Exception, before: str | None
) -> None:
    """Regression: the stage was written over the condition that had been withdrawn."""

    class Claims(SetUp):
        stages = ("DatabaseReady", "Ready")

        async def reconcile(self, axn: StagedAxn[Widget]) -> None:
            with axn.stage("DatabaseReady"):
                pass
            with axn.stage("Ready"):
                pass
            raise error

    kept = {"type": "Ready", "status": before, "reason": "x", "message": "", "lastTransitionTime": LONG_AGO}
    status = None if before is None else {"conditions": [kept]}
    conditions = await written(Claims(), status, fails=None if isinstance(error, Wait) else Retry)

    assert conditions["DatabaseReady"]["status"] == "True"
    assert conditions["Ready"]["status"] == (before or "False")


async def test_the_time_of_a_transition_moves_only_with_the_status() -> None:
    conditions: list[Resource] = [
        {"type": name, "status": status, "reason": "x", "message": "", "lastTransitionTime": LONG_AGO}
        for name, status in (("DatabaseReady", "True"), ("SchemaReady", "True"), ("AppReady", "Unknown"))
    ]
    after = await written(SetUp.configured(error=Wait("not yet"))(), {"conditions": conditions})

    moved = {name: each["lastTransitionTime"] != LONG_AGO for name, each in after.items() if name in STAGES}
    assert moved == {"DatabaseReady": False, "SchemaReady": True, "AppReady": False}


async def test_a_stage_whose_error_is_swallowed_is_false_and_bars_the_next() -> None:
    class Swallows(SetUp):
        async def reconcile(self, axn: StagedAxn[Widget]) -> None:
            try:
                with axn.stage("DatabaseReady"):
                    raise ValueError
            except ValueError:
                pass
            if axn.spec.size > 50:
                with axn.stage("SchemaReady"):
                    pass

    handled = await testing.handle(Swallows, widget())
    assert shown(handled.conditions)["DatabaseReady"] == ("False", "NotDatabaseReady", "")
    with pytest.raises(OptionError, match="the stage SchemaReady is out of order"):
        await testing.handle(Swallows, widget(size=60))


async def test_what_happens_outside_of_stages_leaves_their_conditions() -> None:
    class Fails(SetUp):
        async def reconcile(self, axn: StagedAxn[Widget]) -> None:
            raise Wait("not yet")

    assert shown((await testing.handle(Fails, widget())).conditions) == {}


# --- refused ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [("SchemaReady",), ("Unknown",), ("DatabaseReady", "DatabaseReady")])
async def test_stages_are_entered_once_and_in_their_order(names: tuple[str, ...]) -> None:
    class Careless(SetUp):
        async def reconcile(self, axn: StagedAxn[Widget]) -> None:
            for name in names:
                with axn.stage(name):
                    pass

    order = "enter each stage of Careless once, in this order: Data"
    with pytest.raises(OptionError, match=f"the stage {names[-1]} is out of order: {order}"):
        await testing.handle(Careless, widget())


async def test_a_stage_inside_of_another_is_refused() -> None:
    class Nested(SetUp):
        async def reconcile(self, axn: StagedAxn[Widget]) -> None:
            with axn.stage("DatabaseReady"), axn.stage("SchemaReady"):
                pass

    with pytest.raises(OptionError, match="SchemaReady is out of order"):
        await testing.handle(Nested, widget())


async def test_the_condition_of_a_stage_is_set_by_nothing_else() -> None:
    class Sets(SetUp):
        async def reconcile(self, axn: StagedAxn[Widget]) -> None:
            axn.set_condition("AppReady", True)

    with pytest.raises(OptionError, match=r"AppReady is a stage: axn\.stage sets its condition"):
        await testing.handle(Sets, widget())


class Bare(Version):
    """Without conditions."""

    kind = "Bare"
    plural = "bares"
    version = "v1"
    storage = True
    hub = True
    spec: Spec


@pytest.mark.parametrize(
    ("stages", "resource", "sentence"),
    [
        (("A", "A"), Widget, "write names in CamelCase, each once"),
        (("Reconciled",), Widget, "not Reconciled, which is the runtime's own condition"),
        (("database-ready",), Widget, "write names in CamelCase"),
        (("",), Widget, "write names in CamelCase"),
        (("A",), Bare, "stages are conditions: let the status class inherit WithConditions"),
        (("A",), Kind("apps/v1", "Deployment"), "stages are conditions"),
    ],
)
def test_impossible_stages_are_refused_when_the_class_is_made(stages: Any, resource: Any, sentence: str) -> None:
    with pytest.raises(OptionError, match=sentence):
        type("SetUp", (StagedController,), {"stages": stages, "resource": resource})
