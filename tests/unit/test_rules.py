"""`rules` has one form: a tuple on controllers, reconcilers, watchers, schedulers and periodic tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from bonny import Controller, Kind, List, Operator, PeriodicTask, Reconciler, Resource, Watcher
from bonny.client import Client
from bonny.errors import OptionError
from bonny.scheduler import Scheduler
from bonny_dev.manifest.rbac import CLUSTER, grants
from tests.support.widget import Widget

RULE: Resource = {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["list"]}


def controller(rules: Any) -> Any:
    return type("It", (Controller,), {"resource": Kind("v1", "Pod"), "rules": rules, "reconcile": lambda *_: None})


def reconciler(rules: Any) -> Any:
    return type("It", (Reconciler,), {"operation": List("v1", "Pod"), "rules": rules})


def watcher(rules: Any) -> Any:
    return type("It", (Watcher,), {"operation": List("v1", "Pod"), "rules": rules})


def scheduler(rules: Any) -> Any:
    return type("It", (Scheduler,), {"name": "it", "rules": rules})


def task(rules: Any) -> Any:
    return PeriodicTask("It", print, rules=rules)


EACH = pytest.mark.parametrize("make", [controller, reconciler, watcher, scheduler, task])


@EACH
def test_a_rule_in_a_tuple_is_granted(make: Callable[[Any], Any]) -> None:
    operator = Operator(name="it", group="example.com", controllers=[make((RULE,))])
    assert RULE in grants(operator, namespace="it")[CLUSTER]


@EACH
@pytest.mark.parametrize("rules", [RULE, "jobs", None, ("jobs",), 3])
def test_any_other_form_is_refused_with_the_name_of_the_class(make: Callable[[Any], Any], rules: Any) -> None:
    """Regression: `invoke manifest` ended in "'tuple' object is not callable"."""
    with pytest.raises(OptionError, match=r"It\.rules is .*: write a tuple, with a comma after a single one: rules = "):
        make(rules)


@EACH
def test_the_former_method_is_refused_with_the_new_form(make: Callable[[Any], Any]) -> None:
    class Former:
        @classmethod
        def rules(cls) -> list[Resource]:
            return [RULE]

    with pytest.raises(OptionError, match=r"It\.rules is <bound method .*>: write a tuple, with a comma .*: rules = "):
        make(Former.rules)


@EACH
@pytest.mark.parametrize("values", [None, "list", 3, ["list", 3], {"list": True}])
def test_a_rule_whose_values_are_no_lists_is_named(make: Callable[[Any], Any], values: Any) -> None:
    operator = Operator(name="it", group="example.com", controllers=[make(({**RULE, "verbs": values},))])
    with pytest.raises(OptionError, match=r"a rule of [Ii]t .*: verbs is not a list of strings: write for example \["):
        grants(operator, namespace="it")


# --- a version class in brackets --------------------------------------------------------------------------------------


class Widgets(Reconciler[Widget]):
    """Lists its kind in the operator's group."""


class Shown(Watcher[Widget]):
    """Watches its kind."""


def test_a_version_class_in_brackets_is_the_operation() -> None:
    client = Client(cast("Any", None), user_agent="tests", group="example.com")
    for server in (Widgets, Shown):
        assert server.operation is Widget
        assert server.kind("example.com") == Widget.as_kind("example.com")
        assert server(client).namespaces == (None,)
    (rule,) = Widgets.all_rules("example.com")
    assert rule == {"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["list"]}


def test_the_operator_knows_the_group_of_a_version_in_brackets() -> None:
    operator = Operator(name="it", group="shop.example.com", controllers=[Widgets])
    (rule,) = grants(operator, namespace="it")[CLUSTER]
    assert rule["apiGroups"] == ["shop.example.com"]


def test_an_operation_of_its_own_goes_before_the_brackets() -> None:
    class Some(Reconciler[Widget]):
        operation = List("example.com/v1", "Widget", plural="widgets", scope=Widget.scope, label_selector="a=b")

    class Child(Some): ...

    assert Some.kind().label_selector == Child.kind().label_selector == "a=b"


def test_a_version_class_as_operation_needs_no_brackets() -> None:
    class Some(Reconciler):
        operation = Widget

    assert Some.kind("example.com").plural == "widgets"
