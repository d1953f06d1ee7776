"""Orphans: which children are reported as left behind, and of which nothing is said."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, cast

from bonny.core import watch
from bonny.engine.router import Router
from bonny.engine.stream import Stream
from bonny.kinds import Kind, Owned, Scope
from bonny.resource import Resource
from bonny.run.streams import Orphan, find_orphans
from tests.support.core import line, page, status, thing

WIDGET = Kind("example.com/v1", "Widget", plural="widgets", scope=Scope.NAMESPACED)
GADGET = Kind("example.com/v1", "Gadget", plural="gadgets", scope=Scope.NAMESPACED)
CONFIG_MAP = Owned("v1", "ConfigMap")


def stream(kind: Kind, *things: Resource, namespace: str | None = None) -> Stream:
    """A stream that is in sync and holds `things`."""
    made = unsynced(kind, namespace=namespace)
    tell(made, watch.Reply(200, page(*things)), watch.Opened())
    return made


def unsynced(kind: Kind, *, namespace: str | None = None) -> Stream:
    return Stream(cast("Any", None), kind, namespace=namespace, options=watch.WatchOptions())


def tell(told: Stream, *events: watch.WatchInput) -> None:
    for event in events:
        step = told._step(event)
        with contextlib.suppress(StopIteration):
            while True:
                step.send(None)


def router(primary: Sequence[Stream], *children: Resource) -> Router:
    owned: Mapping[Owned, Sequence[Stream]] = {CONFIG_MAP: [stream(CONFIG_MAP, *children)]}
    return Router(primary=primary, owned=owned, on_status=False)


def child(owner: str, *, reference: bool = True, kind: str = "Widget", namespace: str = "default") -> Resource:
    named = [{"apiVersion": "example.com/v1", "kind": kind, "name": "w", "uid": owner}] if reference else []
    return thing("c", namespace=namespace, labels={"bonny.dev/owner-uid": owner}, owners=named)


async def found(*routers: Router) -> list[Orphan]:
    return await find_orphans(routers)


async def test_a_child_whose_owner_is_there_is_none() -> None:
    assert await found(router([stream(WIDGET, thing("w", uid="u1"))], child("u1"))) == []


async def test_a_child_whose_owner_is_gone_is_one() -> None:
    assert await found(router([stream(WIDGET)], child("u1"))) == [Orphan("configmaps default/c", "u1", collected=True)]


async def test_a_child_that_knows_its_owner_by_label_only_is_not_collected_by_anybody() -> None:
    left = router([stream(WIDGET)], child("u1", reference=False))
    assert [orphan.collected for orphan in await found(left)] == [False]


async def test_the_owner_may_be_handled_by_another_controller() -> None:
    gadgets = router([stream(GADGET, thing("g", uid="u1"))])
    assert await found(router([stream(WIDGET)], child("u1", reference=False)), gadgets) == []


async def test_of_an_owner_whose_kind_nobody_handles_nothing_is_said() -> None:
    assert await found(router([stream(WIDGET)], child("u1", kind="Sprocket"))) == []


async def test_of_what_an_incomplete_stream_may_yet_show_nothing_is_said() -> None:
    assert await found(router([unsynced(WIDGET)], child("u1"))) == []


async def test_of_what_a_stream_in_trouble_may_hide_nothing_is_said() -> None:
    refused = stream(WIDGET)
    tell(refused, watch.Closed())
    assert refused.error is not None
    assert await found(router([refused], child("u1"))) == []


async def test_an_owner_that_left_the_selection_may_still_exist() -> None:
    narrowed = Kind("example.com/v1", "Widget", plural="widgets", scope=Scope.NAMESPACED, label_selector="tier=db")
    assert await found(router([stream(narrowed)], child("u1"))) == []


async def test_an_owner_in_a_namespace_that_is_not_watched_may_exist() -> None:
    watched = stream(WIDGET, namespace="team-a")
    assert await found(router([watched], child("u1", namespace="team-b"))) == []
    assert await found(router([watched], child("u1", namespace="team-a", reference=False))) == []
    assert len(await found(router([watched], child("u1", namespace="team-a")))) == 1


async def test_in_each_of_several_namespaces_orphans_are_found() -> None:
    """Regression: an owner was looked for in the streams of all namespaces, of which each could only show its own."""
    primary = [stream(WIDGET, namespace=namespace) for namespace in ("team-a", "team-b")]
    left = [child("u1", namespace="team-a"), child("u2", namespace="team-b"), child("u3", namespace="team-c")]

    orphans = await found(router(primary, *left[:2]))

    assert {orphan.child for orphan in orphans} == {"configmaps team-a/c", "configmaps team-b/c"}
    assert await found(router(primary, left[2])) == [], "nobody looks there"
    assert await found(router([primary[0], unsynced(WIDGET, namespace="team-b")], left[1])) == []


async def test_while_a_stream_is_listed_anew_nothing_is_said() -> None:
    """Regression: without trouble it counted as complete, also in the middle of a list."""
    listed = stream(WIDGET)
    tell(listed, watch.Line(line("ERROR", status(410, "Expired"))), watch.Tick())
    tell(listed, watch.Reply(200, page(thing("w"), version=20, token="t1")))
    assert listed.error is None
    assert await found(router([listed], child("u1"))) == []


async def test_a_child_of_nobody_is_none() -> None:
    assert await found(router([stream(WIDGET)], thing("c"))) == []
