"""Samples: `check_samples` refuses the objects that the API server would refuse, and names a misspelt kind."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bonny import Axn, Controller, Operator, Related
from bonny.client.config import Cluster
from bonny.errors import UsageError
from bonny_dev import testing
from bonny_dev.tasks.provision import apply_samples
from bonny_dev.testing import RunningOperator
from tests.support.widget import Widget


class Widgets(Controller[Widget]):
    """Refers to a kind of another operator of its group."""

    related = (Related("example.com/v1", "Cogwheel", plural="cogwheels", scope="Namespaced", named_by=lambda _: ()),)

    async def reconcile(self, axn: Axn[Widget]) -> None: ...


operator = Operator(name="widgets", group="example.com", controllers=[Widgets])
SAMPLE = """apiVersion: example.com/v1
kind: Widget
metadata: {name: w1}
spec: {size: 3}
"""
CONFIG_MAP = SAMPLE.replace("example.com/", "").replace("Widget", "ConfigMap").replace("spec: {size: 3}", "data: {}")
HAS = "The operator has Cogwheel of example.com/v1, Widget of example.com/v1"
MISSPELT = f"there is no Wigdet of example.com/v1, did you mean Widget of example.com/v1? {HAS}"


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        (SAMPLE, ""),
        (f"{SAMPLE}---\n{CONFIG_MAP}", ""),
        (SAMPLE.replace("Widget", "Cogwheel"), ""),
        (SAMPLE.replace("example.com/v1", "cert-manager.io/v1"), ""),
        (SAMPLE.replace("size", "sise"), "spec.sise: unknown field: did you mean size?"),
        (SAMPLE.replace("3", "three"), "spec.size: must be of type integer"),
        (SAMPLE.replace("spec", "spce"), "spce: unknown field: did you mean spec?"),
        (SAMPLE.replace("Widget", "Wigdet"), MISSPELT),
        (SAMPLE.replace("Widget", "Lorry"), f"there is no Lorry of example.com/v1: {HAS}"),
        (
            SAMPLE.replace("example.com", "exampel.com"),
            f"there is no Widget of exampel.com/v1, did you mean Widget of example.com/v1? {HAS}",
        ),
        (
            CONFIG_MAP.replace("ConfigMap", "ConfigMpa"),
            f"there is no ConfigMpa of v1, did you mean ConfigMap of v1? {HAS}",
        ),
        (CONFIG_MAP.replace("\ndata", "\ndta"), "ConfigMap w1: dta: unknown field: did you mean data?"),
    ],
)
def test_a_sample_that_the_api_server_would_refuse_fails_the_test(tmp_path: Path, text: str, mistake: str) -> None:
    """Regression: an unknown field passed, and a misspelt kind was a KeyError."""
    samples = tmp_path / "samples"
    samples.mkdir()
    (samples / "widget-v1.yaml").write_text(text, "utf-8")
    (samples / "README.md").write_text("not a sample", "utf-8")
    if not mistake:
        testing.check_samples(operator, samples)
        return
    with pytest.raises(AssertionError) as raised:
        testing.check_samples(operator, samples)
    assert str(raised.value) == f"samples/widget-v1.yaml: {mistake}"


async def test_a_misspelt_kind_is_named_before_anything_is_sent(tmp_path: Path) -> None:
    """Regression: run-local said `404 page not found`."""
    (tmp_path / "widget-v1.yaml").write_text(SAMPLE.replace("Widget", "Wigdet"), "utf-8")
    with pytest.raises(UsageError) as raised:
        await apply_samples(operator, cast("Cluster", None), tmp_path, namespace="default")
    assert str(raised.value) == f"{tmp_path.name}/widget-v1.yaml: {MISSPELT}"

    nothing: Any = SimpleNamespace()
    with pytest.raises(UsageError) as raised:
        await RunningOperator(operator, nothing, lambda: nothing, tmp_path).read(
            {"apiVersion": "example.com/v1", "kind": "Wigdet", "metadata": {"name": "w1"}}
        )
    assert str(raised.value) == MISSPELT
