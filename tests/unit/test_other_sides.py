"""Ways in: the code of the other side on a page runs, too, and wants the same children as the code of this side."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
from pathlib import Path
from shutil import which
from typing import Any

import pytest
import yaml

from bonny import Resource
from bonny_dev import testing
from tests.support.page_code import HOW_TO, blocks, shown

WAYS_IN = (
    "port-a-kopf-operator",
    "port-a-kubebuilder-operator",
    "port-a-metacontroller",
    "port-an-elixir-operator",
    "port-an-operator-sdk-operator",
)


async def wanted(page: str, **spec: Any) -> list[Resource]:
    """The children that the controller of a page registers, as its author wrote them."""
    metadata = {"name": "shop", "namespace": "default", "uid": "f00d", "generation": 1}
    website = {"apiVersion": "example.com/v1", "kind": "Website", "metadata": metadata, "spec": spec}
    axn = await testing.handle(shown(page)["WebsiteController"], website)
    return [without_marks(each) for each in axn.descendants]


def without_marks(child: Resource) -> Resource:
    """A child without what the runtime adds to each."""
    metadata = {name: child["metadata"][name] for name in ("name",)}
    return {**child, "metadata": metadata}


async def test_a_hook_of_metacontroller_and_the_controller_want_the_same_children() -> None:
    (hook,) = blocks("port-a-metacontroller", "py")
    names: dict[str, Any] = {}
    exec(hook, names)
    parent = {"metadata": {"name": "shop"}, "spec": {"host": "shop.org", "replicas": 2}}

    response = names["sync"]({"parent": parent, "children": {"Deployment.apps/v1": {}}})

    assert response["children"] == await wanted("port-a-metacontroller", host="shop.org", replicas=2)
    assert response["status"] == {"available": 0}


@pytest.mark.skipif(which("jq") is None, reason="jq is not installed here")
def test_a_hook_of_shell_operator_and_the_controller_want_the_same_children(tmp_path: Path) -> None:
    (text,) = blocks("port-a-metacontroller", "bash")
    hook, context, patch = tmp_path / "hook.sh", tmp_path / "context.json", tmp_path / "patch.json"
    hook.write_text(text, "utf-8")
    metadata = {"name": "shop", "namespace": "default"}
    website = {"metadata": metadata, "spec": {"host": "shop.org", "replicas": 2}}
    context.write_text(json.dumps([{"type": "Event", "object": website}]), "utf-8")
    settings = {**os.environ, "BINDING_CONTEXT_PATH": str(context), "KUBERNETES_PATCH_PATH": str(patch)}

    config = subprocess.run(["bash", hook, "--config"], env=settings, capture_output=True, check=True)
    subprocess.run(["bash", hook], env=settings, check=True)

    assert yaml.safe_load(config.stdout)["kubernetes"][0]["kind"] == "Website"
    operations = [json.loads(line) for line in patch.read_text("utf-8").splitlines()]
    assert [each["operation"] for each in operations] == ["CreateOrUpdate"]
    wants = asyncio.run(wanted("port-a-metacontroller", host="shop.org", replicas=2))
    assert [without_marks(each["object"]) for each in operations] == wants


@pytest.mark.parametrize("page", WAYS_IN)
def test_a_page_has_both_sides_a_table_the_gaps_and_the_move(page: str) -> None:
    text = (HOW_TO / f"{page}.md").read_text("utf-8")

    assert blocks(page, "(?:py|go|yaml|elixir)")
    assert re.search(r"^(?:## )?Concepts without a counterpart, and the reasons", text, re.MULTILINE)
    assert "## Move a running installation" in text
    assert "(move-an-installation.md)" in text
    source = re.search(r"^\$ invoke migrate-from ([a-z-]+)$", text, re.MULTILINE)
    assert source
    assert f"| `{source[1]}` |" in (HOW_TO / "move-an-installation.md").read_text("utf-8")
    assert f"]({page}.md)" in (HOW_TO / "move-an-installation.md").read_text("utf-8")


@pytest.mark.parametrize("page", WAYS_IN)
def test_each_row_of_a_table_of_names_has_a_counterpart_or_a_reason(page: str) -> None:
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", (HOW_TO / f"{page}.md").read_text("utf-8"), re.MULTILINE)

    assert len(rows) > 10
    assert [row for row in rows if row[1].strip() in {"none", "no", "-", ""}] == []
