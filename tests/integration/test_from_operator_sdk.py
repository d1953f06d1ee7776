"""The page about operator-sdk, with Helm itself: the chart and the controller want the same children."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.support.deployers import accept
from tests.support.page_code import blocks
from tests.unit.test_other_sides import wanted, without_marks

pytestmark = pytest.mark.slow

PAGE = "port-an-operator-sdk-operator"


@pytest.mark.parametrize("expose", [True, False])
async def test_the_chart_and_the_controller_want_the_same_children(expose: bool, tmp_path: Path) -> None:
    (templates,) = blocks(PAGE, "helm")
    chart = tmp_path / "website"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: website\nversion: 1.0.0\n", "utf-8")
    (chart / "values.yaml").write_text("replicas: 1\nexpose: false\n", "utf-8")
    (chart / "templates" / "all.yaml").write_text(templates, "utf-8")

    rendered = accept("helm", "template", "shop", chart, "--set", f"replicas=2,expose={str(expose).lower()}")

    children = [without_marks(each) for each in yaml.safe_load_all(rendered) if each]
    ordered = sorted(await wanted(PAGE, replicas=2, expose=expose), key=lambda each: each["kind"])
    assert sorted(children, key=lambda each: each["kind"]) == ordered
