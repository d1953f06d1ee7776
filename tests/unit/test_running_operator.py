"""`RunningOperator`: where objects without a namespace go."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from bonny import Controller, Operator, Owned
from bonny_dev.testing import RunningOperator
from tests.support.widget import Widget


class Widgets(Controller[Widget]):
    """Owns Pods."""

    owns = (Owned("v1", "Pod"),)

    async def reconcile(self, axn: Any) -> None: ...


@pytest.mark.parametrize(("watch", "namespace"), [("all", "default"), ("namespace", "widgets")])
def test_objects_without_a_namespace_go_where_the_operator_watches(watch: str, namespace: str) -> None:
    """Regression: a bare pod was refused, because the operator's own namespace admits only restricted ones."""
    operator = Operator(name="widgets", group="example.com", controllers=[Widgets], watch=watch)
    running = RunningOperator(operator, cast("Any", None), cast("Any", None), Path())
    for kind in ("Widget", "Pod"):
        version = "example.com/v1" if kind == "Widget" else "v1"
        _, placed = running._placed({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}})
        assert placed["metadata"]["namespace"] == namespace
        _, placed = running._placed({"apiVersion": version, "kind": kind, "metadata": {"name": "a", "namespace": "b"}})
        assert placed["metadata"]["namespace"] == "b"
