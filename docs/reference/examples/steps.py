"""The examples are about the Widget of [widgets.py](examples/widgets.py) and its controller `Publishes`; each is run
by a test. An example that needs an API server gets a real one as `sandbox`, and
[serving](../../tests/support/serving.py) runs an operator in a thread.
"""

from __future__ import annotations

import logging
from typing import Any

import pytest

from bonny import Axn, Operator, steps
from bonny.pipeline import Pipeline, run_step
from bonny.steps import (
    ApplyDescendants,
    ApplyStatus,
    DelegateToController,
    Finalizer,
    Logger,
    PruneDescendants,
    Reconcile,
)
from bonny_dev import testing
from bonny_dev.sandbox import Sandbox
from docs.reference.examples.widgets import GROUP, Publishes, Widget, applied, config_map, widget
from tests.support.serving import serving

WIDGET = f"{GROUP}/v1", "Widget"


def own_step() -> None:
    def unless_paused(axn: Axn[Any]) -> None:
        """Leave alone what carries the annotation example.com/paused."""
        if "example.com/paused" in axn.resource["metadata"].get("annotations", {}):
            axn.halt()

    operator = Operator(
        name="widgets", group=GROUP, controllers=[Publishes], steps=(unless_paused, *steps.default_steps())
    )
    assert operator.steps[0] is unless_paused


async def own_step_with_options() -> None:
    class Limit:
        """A step with an option: at most so many children for an object."""

        def __init__(self, *, children: int) -> None:
            self._children = children

        def __call__(self, axn: Reconcile[Any]) -> None:
            if len(axn.descendants) > self._children:
                axn.failure_event(reason="TooMany", message=f"more than {self._children} children")
                axn.halt()

    axn = testing.axn(widget(), version=Widget)
    for name in ("a", "b", "c"):
        axn.register_descendant(config_map(name))
    await run_step(axn, Limit(children=2))
    assert axn.halted
    testing.assert_event(axn, "TooMany", type="Warning")


def default_steps() -> None:
    names = [type(step).__name__ for step in steps.default_steps()]
    assert names[2:] == ["DelegateToController", "ApplyDescendants", "PruneDescendants", "ApplyStatus"]


async def logger(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    axn = testing.axn(widget("w1"), version=Widget)
    axn.register_descendant(config_map("size"))
    axn.success_event(reason="Resized")
    await Pipeline([Logger(level=logging.INFO)]).run(axn)
    assert caplog.messages == ["processing", "event", "processed"]


def finalizer(sandbox: Sandbox) -> None:
    removed = []

    def remove_backup(axn: Axn[Any]) -> None:
        removed.append(axn.key.name)

    backup = Finalizer(f"{GROUP}/backup", implementation=remove_backup, when=lambda axn: axn.spec.size > 10)
    operator = Operator(
        name="backups", group=GROUP, controllers=[Publishes], steps=(backup, DelegateToController(), ApplyStatus())
    )
    with serving(operator, sandbox.kubeconfig):
        sandbox.apply(applied("large", size=20))
        sandbox.eventually(lambda: (sandbox.get(*WIDGET, "large") or {})["status"])
        sandbox.delete(*WIDGET, "large")
        sandbox.eventually(lambda: sandbox.get(*WIDGET, "large") is None)
    assert removed == ["large"]


async def delegate_to_controller() -> None:
    axn = await testing.handle(Publishes, widget("w1", size=3))  # passes through this step
    testing.assert_descendant(axn, "ConfigMap", "w1-size", data={"size": "3"})


def apply_descendants(sandbox: Sandbox) -> None:
    operator = Operator(
        name="applies",
        group=GROUP,
        controllers=[Publishes],
        steps=(DelegateToController(), ApplyDescendants(create_events=True)),
    )
    with serving(operator, sandbox.kubeconfig):
        sandbox.apply(applied("w2", size=2))
        made = sandbox.eventually(lambda: sandbox.get("v1", "ConfigMap", "w2-size"))
        assert made is not None
        assert made["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "applies"
        sandbox.delete("v1", "ConfigMap", "w2-size")
        sandbox.eventually(lambda: sandbox.get("v1", "ConfigMap", "w2-size"))  # drift is repaired


def prune_descendants(sandbox: Sandbox) -> None:
    class OnlyLargeOnes(Publishes):
        async def reconcile(self, axn: Axn[Widget]) -> None:
            if axn.spec.size > 10:
                await super().reconcile(axn)

    operator = Operator(
        name="prunes",
        group=GROUP,
        controllers=[OnlyLargeOnes],
        steps=(DelegateToController(), ApplyDescendants(), PruneDescendants()),
    )
    with serving(operator, sandbox.kubeconfig):
        sandbox.apply(applied("w3", size=20))
        sandbox.eventually(lambda: sandbox.get("v1", "ConfigMap", "w3-size"))
        sandbox.apply(applied("w3", size=2))
        sandbox.eventually(lambda: sandbox.get("v1", "ConfigMap", "w3-size") is None)


def apply_status(sandbox: Sandbox) -> None:
    def told() -> dict[str, str]:
        live = sandbox.get(*WIDGET, "w4") or {}
        return {condition["type"]: condition["message"] for condition in live["status"]["conditions"]}

    operator = Operator(
        name="reports", group=GROUP, controllers=[Publishes], steps=(DelegateToController(), ApplyStatus())
    )
    with serving(operator, sandbox.kubeconfig):
        sandbox.apply(applied("w4", size=4))
        sandbox.eventually(lambda: told() == {"Ready": "the size is 4", "Reconciled": ""})
