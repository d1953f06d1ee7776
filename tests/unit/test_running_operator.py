"""`RunningOperator`: where objects without a namespace go, and what it says of an object that does not change."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import bonny
from bonny import Controller, Operator, Owned
from bonny.client.errors import Failure, Invalid, refusal
from bonny_dev import testing
from bonny_dev.testing import RunningOperator
from tests.support.widget import Widget, widget


class Widgets(Controller[Widget]):
    """Owns Pods."""

    owns = (Owned("v1", "Pod"),)

    async def reconcile(self, axn: Any) -> None: ...


@pytest.mark.parametrize(("watch", "namespace"), [("all", "default"), ("namespace", "widgets")])
def test_objects_without_a_namespace_go_where_the_operator_watches(watch: str, namespace: str) -> None:
    """Regression: a bare pod was refused, because the operator's own namespace admits only restricted ones."""
    operator = Operator(name="widgets", group="example.com", controllers=[Widgets], watch=watch)
    running = RunningOperator(operator, cast("Any", None), cast("Any", lambda: None), Path())
    for kind in ("Widget", "Pod"):
        version = "example.com/v1" if kind == "Widget" else "v1"
        _, placed = running._placed({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}})
        assert placed["metadata"]["namespace"] == namespace
        _, placed = running._placed({"apiVersion": version, "kind": kind, "metadata": {"name": "a", "namespace": "b"}})
        assert placed["metadata"]["namespace"] == "b"


async def test_a_wait_in_vain_shows_the_object_without_managed_fields(tmp_path: Path) -> None:
    """Regression: five lines of an object stood between two hundred of its managedFields."""
    live = widget(size=3)
    live["metadata"]["managedFields"] = [{"manager": "kubectl", "fieldsV1": {"f:spec": {"f:size": {}}}}]

    async def get(*_: object, **__: object) -> Any:
        return live

    process = SimpleNamespace(poll=lambda: None)
    log = tmp_path / "operator.log"
    log.touch()
    operator = Operator(name="widgets", group="example.com", controllers=[Widgets])
    running = RunningOperator(operator, cast("Any", SimpleNamespace(get=get)), cast("Any", lambda: process), log)
    with pytest.raises(AssertionError, match="'size': 3") as raised:
        await running.until(live, lambda _: False, within=0.1)
    assert "f:size" not in str(raised.value)
    assert "fieldsV1" in str(live)


async def test_a_refused_object_is_reported_with_the_text_that_a_user_reads() -> None:
    """Regression: the error advised `kubectl apply --dry-run=server`, for an API server that had ended."""
    denied = 'admission webhook "widgets.example.com" denied the request: spec.size: must be even'

    class Refusing:
        async def apply(self, *_: Any, **__: Any) -> None:
            raise refusal(Failure(code=422, reason="Invalid", message=denied), verb="apply", resource="widgets a")

    operator = Operator(name="widgets", group="example.com", controllers=[Widgets])
    running = RunningOperator(operator, cast("Any", Refusing()), cast("Any", lambda: None), Path())
    with pytest.raises(Invalid) as raised:
        await running.apply(widget())
    assert raised.value.__notes__ == [denied]


def test_there_is_one_way_to_ask_whether_an_object_is_ready() -> None:
    """Regression: two functions of one name differed for built-in kinds and for objects under deletion."""
    assert testing.is_ready is bonny.is_ready
