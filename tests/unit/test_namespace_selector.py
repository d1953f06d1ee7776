"""Which namespaces an operator watches: all, its own, a list of names, or the ones with certain labels."""

from __future__ import annotations

from typing import Any

import pytest

from bonny import Controller, Kind, List, Operator, Resource, Watcher
from bonny.errors import OptionError, UsageError
from bonny.main import defaults
from bonny.namespaces import NamespaceSelector
from bonny.run.config import Config, settings
from bonny_dev.manifest import bundle

LABELED, NAMED = "BONNY_WATCH_NAMESPACES_LABELED", "BONNY_WATCH_NAMESPACE"
IMAGE = "registry.example.com/lamps:1"


class Pods(Controller[Any]):
    resource = Kind("v1", "Pod")

    async def reconcile(self, axn: Any) -> None: ...


def operator(watch: Any, *controllers: Any) -> Operator:
    return Operator(name="lamps", group="example.com", controllers=controllers or (Pods,), watch=watch)


def read(environ: dict[str, str], watch: Any) -> Config:
    return Config.from_environment(environ, base=defaults(operator(watch)))


def in_force(environ: dict[str, str], watch: Any) -> dict[str, tuple[str, str]]:
    return {each.name: (each.value, each.source) for each in settings(environ, base=defaults(operator(watch)))}


@pytest.mark.parametrize(
    ("environ", "names", "selector"),
    [
        ({}, (), "team=a"),
        ({LABELED: "team in (b,c)"}, (), "team in (b,c)"),
        ({NAMED: "x,y"}, ("x", "y"), "team=a"),
        ({NAMED: "__ALL__"}, None, "team=a"),
        ({"BONNY_POD_NAMESPACE": "here"}, ("here",), "team=a"),
        ({"BONNY_POD_NAMESPACE": "here", LABELED: "team=b"}, (), "team=b"),
    ],
)
def test_a_variable_goes_before_the_code(environ: dict[str, str], names: tuple[str, ...] | None, selector: str) -> None:
    config = read(environ, NamespaceSelector("team=a"))

    assert config.watch_namespaces == names
    assert config.of(NamespaceSelector).selector == selector


def test_the_settings_show_where_a_selector_comes_from() -> None:
    assert in_force({}, NamespaceSelector("team=a"))[LABELED] == ("team=a", "operator")
    assert in_force({LABELED: "team=b"}, NamespaceSelector("team=a"))[LABELED] == ("team=b", LABELED)
    assert in_force({}, "all")[LABELED] == ("", "default")


@pytest.mark.parametrize("watch", ["all", "namespace", ("a", "b"), NamespaceSelector("team=a")])
def test_names_and_labels_in_the_environment_exclude_each_other(watch: Any) -> None:
    with pytest.raises(UsageError, match=f"^{NAMED} and {LABELED} are both set: leave out one of them$"):
        read({NAMED: "a", LABELED: "team=a"}, watch)


@pytest.mark.parametrize("selector", ["team in (a", "a==b==c", "in (a)", "-=x", "a=" + "x" * 70])
def test_a_selector_that_the_api_server_would_refuse_is_one_sentence(selector: str) -> None:
    with pytest.raises(OptionError, match="is not a label selector"):
        NamespaceSelector(selector)
    with pytest.raises(UsageError, match=f"^{LABELED} is .* use a selector of labels, such as team in"):
        read({LABELED: selector}, "all")


@pytest.mark.parametrize("watch", [(), 3, None, "team-a", ["a", 3], [["a"]], [None]])
def test_a_watch_without_a_list_of_names_is_refused_in_one_sentence(watch: Any) -> None:
    """Regression: a number in a list was a TypeError."""
    with pytest.raises(OptionError, match=r"^watch of operator lamps is .*: write 'all', 'namespace' for "):
        operator(watch)


def test_a_selector_of_everything_and_a_watcher_that_cannot_follow_are_refused() -> None:
    class Everywhere(Watcher):
        operation = List("v1", "Secret")

        def add(self, resource: Resource) -> None: ...

    class Here(Watcher):
        operation = List("v1", "Secret", namespace="here")

        def add(self, resource: Resource) -> None: ...

    with pytest.raises(OptionError, match="selects all namespaces: write watch='all'"):
        operator(NamespaceSelector(" "))
    with pytest.raises(OptionError, match="Everywhere cannot follow namespaces that join and leave"):
        operator(NamespaceSelector("team=a"), Pods, Everywhere)
    assert operator(NamespaceSelector("team=a"), Pods, Here).watched("lamps") == ()


@pytest.mark.parametrize("watch", ["some", "", (), [], 5, None, ("Not_A_Name",), ("__ALL__",)])
def test_namespaces_that_cannot_be_are_refused(watch: Any) -> None:
    with pytest.raises(UsageError):
        operator(watch)


def placed(documents: list[Resource]) -> list[tuple[str, str, str]]:
    roles = ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
    found = [(each["kind"], each["metadata"]["name"], each["metadata"].get("namespace", "")) for each in documents]
    return sorted(each for each in found if each[0] in roles)


def variables(documents: list[Resource]) -> dict[str, str]:
    (deployment,) = [each for each in documents if each["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return {each["name"]: each["value"] for each in container["env"] if "value" in each}


def test_a_list_of_namespaces_is_granted_and_watched_one_by_one() -> None:
    documents = bundle.documents(operator(["team-a", "team-b", "team-a"]), image=IMAGE)

    assert variables(documents)[NAMED] == "team-a,team-b"
    assert LABELED not in variables(documents)
    assert placed(documents) == [
        *(("Role", "lamps", each) for each in ("lamps", "team-a", "team-b")),
        *(("RoleBinding", "lamps", each) for each in ("lamps", "team-a", "team-b")),
    ]


def test_selected_namespaces_are_granted_as_a_whole_or_one_by_one() -> None:
    selecting = operator(NamespaceSelector("team in (a,b)"))
    everywhere = bundle.documents(selecting, image=IMAGE)
    one_by_one = bundle.documents(selecting, image=IMAGE, grant_in=["team-a", "team-b"])

    for documents in (everywhere, one_by_one):
        assert variables(documents)[LABELED] == "team in (a,b)"
        assert NAMED not in variables(documents)
        (cluster,) = [
            each for each in documents if each["kind"] == "ClusterRole" and each["metadata"]["name"] == "lamps"
        ]
        (read,) = [each for each in cluster["rules"] if "namespaces" in each["resources"]]
        assert (read["apiGroups"], read["verbs"]) == ([""], ["get", "list", "watch"])
    pods = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
    roles = {each["metadata"]["name"]: each["rules"] for each in one_by_one if each["kind"] == "ClusterRole"}
    assert pods in roles["lamps-in-namespace"]
    assert pods not in roles["lamps"]
    assert placed(one_by_one) == [
        ("ClusterRole", "lamps", ""),
        ("ClusterRole", "lamps-in-namespace", ""),
        ("ClusterRoleBinding", "lamps", ""),
        ("Role", "lamps", "lamps"),
        ("RoleBinding", "lamps", "lamps"),
        ("RoleBinding", "lamps-in-namespace", "team-a"),
        ("RoleBinding", "lamps-in-namespace", "team-b"),
    ]


@pytest.mark.parametrize(("watch", "grant_in"), [("all", ["a"]), (("a",), ["a"]), (NamespaceSelector("a=b"), ["A b"])])
def test_namespaces_to_grant_in_that_cannot_be_are_refused(watch: Any, grant_in: list[str]) -> None:
    with pytest.raises(UsageError, match="--grant-in"):
        bundle.documents(operator(watch), image=IMAGE, grant_in=grant_in)
