"""The steps of `compat`: what they skip and fill in."""

from __future__ import annotations

from typing import Any

import pytest

from bonny import Axn, Controller, Reason, compat
from bonny.compat.steps import AddManagedByLabelToDescendants, AddMissingGVK, SkipObservedGenerations
from bonny.core.records import Action
from bonny.engine.reconcile import Reconcile
from bonny.errors import OptionError
from bonny.pipeline import Pipeline
from bonny_dev import testing
from tests.support.tokens import token_of
from tests.support.widget import Widget, widget


def modified(observed: int | None, action: Action = Action.MODIFY, **fields: Any) -> Reconcile[Any]:
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
def test_only_the_first_try_of_a_change_that_was_observed_is_skipped(axn: Reconcile[Any], halted: bool) -> None:
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
    axn = modified(None)
    del axn.resource["apiVersion"]
    AddMissingGVK("example.com/v2", "Gadget")(axn)
    assert (axn.resource["apiVersion"], axn.resource["kind"]) == ("example.com/v2", "Widget")


def test_the_managed_by_label_is_shown_to_hooks() -> None:
    axn = testing.axn(widget(), axn_class=compat.Axn)
    AddManagedByLabelToDescendants()(axn)
    axn.register_descendant({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "labels": {"a": "b"}}})
    axn.before_apply_descendants()
    testing.assert_descendant(
        axn, "Secret", "s", metadata={"labels": {"a": "b", "app.kubernetes.io/managed-by": "test"}}
    )


def test_a_wait_does_not_take_the_label_off() -> None:
    assert AddManagedByLabelToDescendants.runs_while_waiting


# --- steps of users ---------------------------------------------------------------------------------------------------


@compat.step
def halts(axn: compat.Axn[Any]) -> None:
    """Halt."""
    axn.private["halted"] = True
    axn.halt()


@compat.step
async def waits(axn: compat.Axn[Any]) -> None:
    axn.assigns["waited"] = True


async def test_a_marked_step_gets_the_axn_of_a_compat_controller() -> None:
    axn = testing.axn(widget(), axn_class=compat.Axn)
    await Pipeline([waits, halts]).run(axn)
    assert axn.halted
    assert halts.__name__ == "halts"


@pytest.mark.parametrize("step", [halts, AddManagedByLabelToDescendants()])
async def test_a_step_names_the_controller_whose_axn_has_no_hooks(step: Any) -> None:
    class Plain(Controller[Widget]):
        steps = (step,)

        async def reconcile(self, axn: Axn[Widget]) -> None: ...

    with pytest.raises(OptionError, match=r"the axn of Plain lacks: let Plain inherit compat\.Controller"):
        await testing.handle(Plain, widget())
