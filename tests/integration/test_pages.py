"""Reading a kind page by page, on a real API server: of any size, however slow the reader is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bonny.client import pages as pages_module
from bonny.client.api import Client
from bonny.client.config import Kubeconfig
from bonny.client.errors import Forbidden, ServerError
from bonny.client.pages import pages
from bonny.kinds import Kind, List
from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import Fault, FaultProxy, ProxiedRequest, Respond, is_list
from tests.faults.scene import SLOW, compact
from tests.support.place import Place, place

CONFIG_MAP = List("v1", "ConfigMap")
RULES = [{"apiGroups": [""], "resources": ["configmaps", "pods"], "verbs": ["list"]}]


@pytest.fixture
async def here(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    """Pages of ten objects."""
    monkeypatch.setattr(pages_module, "LIST_PAGE", 10)
    async with place(sandbox, RULES) as made:
        yield made


def made_here(here: Place, count: int, **data: str) -> set[str]:
    names = {f"c{number:02}" for number in range(count)}
    for name in names:
        here.config_map(name, **data)
    return names


def lists(here: Place) -> list[tuple[str, int | None]]:
    """The limit and the status of each list that was asked for."""
    return [(request.query["limit"], request.status) for request in here.proxy.requests if is_list(request)]


async def read(here: Place, kind: Kind) -> list[list[str]]:
    """The names, page by page."""
    return [
        [item.meta.name for item in page.items] async for page in pages(here.client, kind, namespace=here.namespace)
    ]


async def test_every_object_comes_once_page_by_page(here: Place) -> None:
    names = made_here(here, 25)
    found = await read(here, CONFIG_MAP)
    assert [len(page) for page in found] == [10, 10, 5]
    assert sorted(name for page in found for name in page) == sorted(names)


async def test_selectors_narrow_what_comes(here: Place) -> None:
    here.pod("a", tier="db")
    here.pod("b", tier="web")
    here.pod("c", tier="db", node="n1")

    assert await read(here, List("v1", "Pod", label_selector="tier=db")) == [["a", "c"]]
    assert await read(here, List("v1", "Pod", field_selector="spec.nodeName=n1")) == [["c"]]
    assert await read(here, List("v1", "Pod", label_selector="tier=no")) == [[]]


async def test_the_whole_list_of_a_client_is_narrowed_by_fields_too(here: Place) -> None:
    """Regression: the field selector of a kind was not sent, so everything came."""
    here.pod("a")
    here.pod("b", node="n1")
    kind = Kind("v1", "Pod", field_selector="spec.nodeName=n1")
    found = await here.client.list(kind, namespace=here.namespace)
    assert [pod["metadata"]["name"] for pod in found] == ["b"]


async def test_metadata_alone_comes_without_the_rest(here: Place) -> None:
    made_here(here, 1, size="1")
    kind = List("v1", "ConfigMap", metadata_only=True)
    (page,) = [page async for page in pages(here.client, kind, namespace=here.namespace)]
    (item,) = page.items
    assert set(item.decode()) <= {"apiVersion", "kind", "metadata"}


async def test_a_page_of_large_objects_is_asked_for_in_smaller_ones(
    here: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages_module, "PAGE_BYTES", 8_000)
    names = made_here(here, 3, pad="x" * 4_000)

    found = await read(here, CONFIG_MAP)

    assert found == [[name] for name in sorted(names)]
    assert lists(here) == [("10", 200), ("1", 200), ("1", 200), ("1", 200)]


@pytest.mark.parametrize(
    ("status", "error", "message"),
    [
        (Respond(200, b"<html>welcome</html>", "text/html"), ServerError, "the answer is not a list"),
        (Respond(200, b'{"items": null}', "application/json"), ServerError, "the answer is not a list"),
        (Respond(503, b"no backend"), ServerError, "no backend"),
        (Respond(410, b"gone"), ServerError, "gone"),
        (Respond(410, b'{"metadata": {"continue": 7}}'), ServerError, "410"),
    ],
)
async def test_what_is_no_list_is_an_error(here: Place, status: Respond, error: type[Exception], message: str) -> None:
    here.proxy.add(Fault(status, on=is_list))
    with pytest.raises(error, match=rf"cannot list configmaps .*{message}"):
        await read(here, CONFIG_MAP)


async def test_what_may_not_be_listed_is_an_error(here: Place) -> None:
    with pytest.raises(Forbidden, match="cannot list secrets"):
        await read(here, Kind("v1", "Secret"))


async def test_pages_that_go_in_a_circle_end_with_an_error(here: Place) -> None:
    body = b'{"metadata": {"resourceVersion": "1", "continue": "again"}, "items": []}'
    here.proxy.add(Fault(Respond(200, body, "application/json"), on=is_list, times=None))
    with pytest.raises(ServerError, match="the pages go in a circle"):
        await read(here, CONFIG_MAP)
    assert len(lists(here)) == 2


async def test_a_whole_list_is_read_by_the_same_rules(here: Place) -> None:
    """Regression: the list of a client had its own pages: it followed a circle for ever, and failed on null items."""
    circle = b'{"metadata": {"resourceVersion": "1", "continue": "again"}, "items": []}'
    here.proxy.add(Fault(Respond(200, circle, "application/json"), on=is_list, times=2))
    with pytest.raises(ServerError, match="the pages go in a circle"):
        await here.client.list(CONFIG_MAP, namespace=here.namespace)

    null = b'{"metadata": {"resourceVersion": "1"}, "items": null}'
    here.proxy.add(Fault(Respond(200, null, "application/json"), on=is_list, times=1))
    assert await here.client.list(CONFIG_MAP, namespace=here.namespace) == []


async def test_a_whole_list_names_the_type_of_each_object(here: Place) -> None:
    made_here(here, 12, size="1")
    found = await here.client.list(CONFIG_MAP, namespace=here.namespace)
    assert len(found) == 12
    assert {(each["apiVersion"], each["kind"], each["data"]["size"]) for each in found} == {("v1", "ConfigMap", "1")}


async def test_a_whole_list_stays_in_the_namespace_of_its_kind(here: Place) -> None:
    """Regression: it asked for all namespaces, which a Role of one namespace does not permit."""
    names = made_here(here, 3)

    listed = await here.client.list(List("v1", "ConfigMap", namespace=here.namespace))

    assert {each["metadata"]["name"] for each in listed} == names
    assert {each["metadata"]["namespace"] for each in listed} == {here.namespace}


async def test_a_list_that_expires_again_at_once_is_given_up(here: Place) -> None:
    made_here(here, 15)
    expired = Respond(410, b'{"metadata": {"continue": "next"}, "reason": "Expired", "message": "too old"}')
    here.proxy.add(Fault(expired, on=lambda request: bool(request.query.get("continue")), times=None))
    with pytest.raises(ServerError, match="too old"):
        await read(here, CONFIG_MAP)
    assert [status for _, status in lists(here)] == [200, 410, 410]


@SLOW
async def test_a_list_that_really_expired_goes_on_behind_its_last_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real thing: etcd is compacted and the API server restarts between two pages."""
    monkeypatch.setattr(pages_module, "LIST_PAGE", 10)

    def expire(own: Sandbox) -> None:
        own.apiserver.kill()
        compact(own)
        own.apiserver.start()
        own.eventually(lambda: own.request("GET", "/api/v1/namespaces/default/configmaps").status == 200)

    def write(own: Sandbox, *names: str) -> None:
        own.apply(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
            for name in names
        )

    with Sandbox() as own, FaultProxy(own) as proxy:
        write(own, *(f"c{number:02}" for number in range(25)))
        found: list[Any] = []
        async with Client(Kubeconfig(str(proxy.kubeconfig)), user_agent="pages/1.0") as client:
            async for page in pages(client, CONFIG_MAP, namespace="default"):
                if not found:
                    write(own, "zz")
                    await asyncio.to_thread(expire, own)
                found.append([item.meta.name for item in page.items])

        assert [name for page in found for name in page] == [*(f"c{number:02}" for number in range(25)), "zz"]

        def restarts(request: ProxiedRequest) -> bool:
            return is_list(request) and not request.query.get("continue")

        assert proxy.count(restarts) == 1
        assert proxy.count(lambda request: request.status == 410) == 1
