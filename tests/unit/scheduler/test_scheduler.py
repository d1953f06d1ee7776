"""What a user writes, and what is said when it cannot work."""

from __future__ import annotations

from typing import Any

import pytest

from bonny.errors import OptionError, UsageError
from bonny.resource import Resource
from bonny.scheduler import Binding, Scheduler
from bonny.scheduler.scheduler import matcher
from tests.support.scheduling import node, node_view, pod, pod_view

EXACT: Resource = {
    "apiVersion": "v1",
    "kind": "Binding",
    "metadata": {"name": "nginx", "namespace": "default"},
    "target": {"apiVersion": "v1", "kind": "Node", "name": "kewl-node"},
}


def test_a_binding_is_exactly_what_the_original_makes() -> None:
    assert Binding.new(pod("nginx"), node("kewl-node")) == EXACT
    assert Binding.new(pod_view("nginx"), node_view("kewl-node")) == EXACT


def test_a_binding_of_views_decodes_neither_pod_nor_node() -> None:
    """Regression: each node that was ever chosen was held in memory a second time, decoded as a whole."""
    one, where = pod_view("nginx"), node_view("kewl-node")

    Binding.new(one, where)

    assert "resource" not in vars(one)
    assert "resource" not in vars(where)


def test_views_are_objects_like_any_other() -> None:
    shown = pod_view("nginx", cpu="1", labels={"app": "web"})

    assert (shown["apiVersion"], shown["kind"], shown["metadata"]["name"]) == ("v1", "Pod", "nginx")
    assert shown["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}
    assert "status" in shown
    assert {shown: 1}[shown] == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"name": "Cheap Node"}, "'Cheap Node' is not a name of Wrong"),
        ({"check": lambda pod: True}, "Wrong.check takes pod and node"),
        ({"check": lambda self, pod, node: True}, "Wrong.check takes pod and node"),
        ({"timeout": 0}, "Wrong.timeout is 0: use more than 0 seconds"),
        ({"max_bindings": 0}, "Wrong.max_bindings is 0: use 1 or more"),
    ],
)
def test_an_option_that_cannot_be_is_named_in_one_sentence(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        type("Wrong", (Scheduler,), options)


def test_by_default_the_pods_are_those_that_name_the_scheduler_and_have_no_node() -> None:
    class CheapNode(Scheduler):
        name = "cheap-node"

    own = matcher(CheapNode().field_selector, where="it")

    assert own(pod_view(scheduler="cheap-node"))
    assert not own(pod_view(scheduler="other"))
    assert not own(pod_view(scheduler="cheap-node", node="n1"))


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("", True),
        ("metadata.name=p1", True),
        ("metadata.name==p1, metadata.namespace = default", True),
        ("metadata.name!=p1", False),
        ("status.phase!=Running,status.phase=Pending", True),
        ("spec.nodeName=n1", False),
    ],
)
def test_field_selectors_are_read_as_the_api_reads_them(selector: str, expected: bool) -> None:
    assert matcher(selector, where="it")(pod_view()) is expected


@pytest.mark.parametrize("selector", ["spec.restartPolicy=Always", "metadata.name", "metadata.name>p1", "=p1"])
def test_a_field_selector_that_cannot_be_is_named_in_one_sentence(selector: str) -> None:
    with pytest.raises(
        OptionError, match=r"field_selector of X has .*: write field=value or field!=value, of metadata"
    ):
        matcher(selector, where="field_selector of X")


def test_the_rules_are_the_least_that_is_needed() -> None:
    assert Scheduler.all_rules() == [
        {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]},
    ]
