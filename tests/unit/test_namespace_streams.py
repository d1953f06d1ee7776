"""Streams of namespaces that join and leave: what a router finds in them, and that their number costs nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, cast

import pytest

from bonny import Axn, Controller, Key, Operator, Owned, Related
from bonny.core import watch
from bonny.core.queue import Reason
from bonny.core.store import Delta
from bonny.engine.stream import Stream
from bonny.namespaces import NamespaceSelector
from bonny.namespaces.streams import Followed, NamespaceRouter, NamespaceStreams
from bonny.resource import OWNER_UID
from tests.support.core import thing
from tests.support.working import WIDGET, lists, says

CONFIG_MAP = Owned("v1", "ConfigMap")
SECRET = Related("v1", "Secret", named_by=lambda widget: [widget["spec"]["secret"]])
TYPE = {"apiVersion": "v1", "kind": "ConfigMap"}
SECRET_TYPE = {"apiVersion": "v1", "kind": "Secret"}


class Widgets(Controller[Any]):
    resource = WIDGET
    owns = (CONFIG_MAP,)
    related = (SECRET,)

    async def reconcile(self, axn: Axn[Any]) -> None: ...


class Selected:
    """A router with namespaces that have a Widget, a child of it, and a Secret each."""

    def __init__(self) -> None:
        operator = Operator(
            name="widgets", group="example.com", controllers=(Widgets,), watch=NamespaceSelector("team=a")
        )
        self.streams = NamespaceStreams(operator, [], lambda _: None)
        self.streams.client = cast("Any", None)
        (kind,) = Widgets.kinds(operator.group)
        self.router = cast("NamespaceRouter", self.streams.router(Widgets, kind))
        self.followed: dict[str, Followed] = {}
        self._made: dict[str, Any] = {}

    async def join(self, *names: str, owner: str = "") -> None:
        for name in names:
            joined = self._made[name] = self.streams.within(name)
            followed = self.followed[name] = joined.followed(self.router)
            self.router.prepare(followed)
            widget = thing("w", namespace=name, uid=f"widget-{name}", spec={"secret": "s"})
            await lists(followed.primary[0], {"apiVersion": WIDGET.api_version, "kind": WIDGET.kind, **widget})
            await lists(self.config_maps(name), self.child(name, owner or f"widget-{name}"))
            await lists(self.secrets(name), thing("s", namespace=name, uid=f"secret-{name}", **SECRET_TYPE))
            await self.router.join(name, followed)
        self.take_all()

    def leave(self, name: str) -> None:
        self.router.hide(name)
        self.router.leave(name, self.followed.pop(name), deleted=False)
        self.streams.close(self._made.pop(name))

    def config_maps(self, name: str) -> Stream:
        return next(iter(self.followed[name].owned.values()))[0]

    def secrets(self, name: str) -> Stream:
        return self.followed[name].related[SECRET][0]

    def child(self, namespace: str, owner: str, *, version: int = 1) -> dict[str, Any]:
        return thing("c", namespace=namespace, uid=f"c-{namespace}", version=version, labels={OWNER_UID: owner}, **TYPE)

    def take_all(self) -> dict[Key, frozenset[Reason]]:
        """The keys that are queued, and why."""
        taken = {}
        while (work := self.router.queue.take(now=1e9)) is not None:
            taken[work.key] = work.reasons
            self.router.queue.done(work.key, now=1e9)
        return taken


async def test_the_namespaces_are_searched_as_one() -> None:
    selected = Selected()
    await selected.join("a", "b")
    await selected.join("c", owner="widget-a")
    router = selected.router

    assert {item.key for _, item in router.children_of("widget-a")} == {Key("a", "c"), Key("c", "c")}
    assert router.stream_of(CONFIG_MAP, Key("b", "c")) is selected.config_maps("b")
    assert router.stream_of(SECRET, Key("c", "s")) is selected.secrets("c")
    assert router.stream_of(CONFIG_MAP, Key("elsewhere", "c")) is None

    await says(selected.config_maps("c"), "MODIFIED", selected.child("c", "widget-a", version=2))
    assert selected.take_all() == {Key("a", "w"): {Reason.CHILD}}, "an owner in another namespace"
    await says(selected.secrets("b"), "MODIFIED", thing("s", namespace="b", uid="secret-b", version=2, **SECRET_TYPE))
    assert selected.take_all() == {Key("b", "w"): {Reason.RELATED}}
    await says(selected.config_maps("c"), "MODIFIED", selected.child("c", "widget-b", version=3))
    assert set(selected.take_all()) == {Key("a", "w"), Key("b", "w")}
    assert {item.key for _, item in router.children_of("widget-a")} == {Key("a", "c")}
    assert {item.key for _, item in router.children_of("widget-b")} == {Key("b", "c"), Key("c", "c")}


async def test_a_namespace_that_left_is_found_nowhere() -> None:
    selected = Selected()
    await selected.join("a", "b")
    await selected.join("c", owner="widget-a")
    selected.leave("c")
    selected.leave("b")
    router = selected.router

    assert {item.key for _, item in router.children_of("widget-a")} == {Key("a", "c")}
    assert router.children_of("widget-b") == []
    assert router.stream_of(CONFIG_MAP, Key("b", "c")) is None
    await says(selected.config_maps("a"), "MODIFIED", selected.child("a", "widget-b", version=2))
    assert set(selected.take_all()) == {Key("a", "w")}, "its owners are in no index"
    await selected.join("b")
    assert {item.key for _, item in router.children_of("widget-b")} == {Key("a", "c"), Key("b", "c")}


async def test_children_are_unknown_while_one_stream_of_children_is_not_up_to_date() -> None:
    selected = Selected()
    await selected.join("a", "b")
    router, owner = selected.router, Key("a", "w")

    assert router.children("widget-a", owner=owner) is not None
    await selected.secrets("b")._step(_broken())
    assert router.children("widget-a", owner=owner) is not None, "no stream of children"
    await selected.config_maps("b")._step(_broken())
    assert router.children("widget-a", owner=owner) is None
    selected.leave("b")
    assert router.children("widget-a", owner=owner) is not None


@pytest.mark.parametrize("of", ["an event of a child", "an event of a Secret", "a look at the children", "one child"])
async def test_the_number_of_namespaces_costs_nothing(of: str) -> None:
    few, many = Selected(), Selected()
    await few.join("n0", "n1")
    await many.join(*(f"n{number}" for number in range(50)))

    assert _calls(few, of) == _calls(many, of)


def _broken() -> Any:
    return watch.Broken("the connection ended")


def _calls(selected: Selected, of: str) -> int:
    """The calls of Python functions that this takes."""
    router, child, secret = selected.router, Key("n1", "c"), selected.secrets("n1")
    (shown,) = selected.config_maps("n1").store.items()
    (related,) = secret.store.items()
    work: dict[str, Callable[[], Any]] = {
        "an event of a child": lambda: router.seen(selected.config_maps("n1"), _delta(shown)),
        "an event of a Secret": lambda: router.seen(secret, _delta(related)),
        "a look at the children": lambda: router.children("widget-n1", owner=Key("n1", "w")),
        "one child": lambda: router.stream_of(CONFIG_MAP, child),
    }
    calls = 0

    def count(frame: FrameType, event: str, _: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        assert work[of]() is not False
    finally:
        sys.setprofile(None)
    return calls


def _delta(item: Any) -> Any:
    return Delta(item.key, item, item, live=True)
