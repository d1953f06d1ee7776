"""Names of objects in requests: one that cannot be a name is refused before anything is sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bonny import Kind
from bonny.client.api import Client
from bonny.errors import OptionError

CONFIG_MAP = Kind("v1", "ConfigMap")
NODE = Kind("v1", "Node")
IMPOSSIBLE = ("", " ", ".", "..", "a/b", "a%2fb", "a\nb", "a\n", "\0", "a" * 10_000)
Call = Callable[[Client, str], Awaitable[Any]]


def config_map(name: str, namespace: str = "default") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}


CALLS: dict[str, Call] = {
    "get": lambda client, text: client.get(CONFIG_MAP, ("default", text)),
    "get of the cluster": lambda client, text: client.get(NODE, text),
    "apply": lambda client, text: client.apply(CONFIG_MAP, config_map(text)),
    "create of a subresource": lambda client, text: client.create(CONFIG_MAP, config_map(text), subresource="eviction"),
    "replace": lambda client, text: client.replace(CONFIG_MAP, config_map(text)),
    "merge_patch": lambda client, text: client.merge_patch(CONFIG_MAP, ("default", text), {}),
    "json_patch": lambda client, text: client.json_patch(CONFIG_MAP, ("default", text), []),
    "delete": lambda client, text: client.delete(CONFIG_MAP, ("default", text)),
    "list": lambda client, text: client.list(CONFIG_MAP, namespace=text),
    "namespace of get": lambda client, text: client.get(CONFIG_MAP, (text, "a")),
    "namespace of delete": lambda client, text: client.delete(CONFIG_MAP, (text, "a")),
}


class Nowhere:
    """A cluster to which nothing may be sent."""

    source = "the test"

    async def connect(self) -> Any:
        raise AssertionError("a request was begun")


@pytest.mark.parametrize("text", IMPOSSIBLE, ids=lambda text: repr(text[:8]))
@pytest.mark.parametrize("name", CALLS)
async def test_what_is_no_name_is_refused_before_a_request(name: str, text: str) -> None:
    """Regression: `delete` of the name "" deleted every object of the kind in the namespace, and `list` of the
    namespace "" read all of them."""
    async with Client(Nowhere(), user_agent="test/1") as client:
        with pytest.raises(OptionError) as refused:
            await CALLS[name](client, text)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("name", ["a", "kube-root-ca.crt", "system:node-proxier", "a" * 253, "A_b", "...", "ä"])
async def test_other_names_are_left_to_the_api_server(name: str) -> None:
    async with Client(Nowhere(), user_agent="test/1") as client:
        with pytest.raises(AssertionError, match="a request was begun"):
            await client.get(CONFIG_MAP, ("default", name))


@pytest.mark.parametrize("text", [text for text in IMPOSSIBLE if text], ids=lambda text: repr(text[:8]))
async def test_what_is_no_subresource_or_selector_is_refused_before_a_request(text: str) -> None:
    """Regression: the subresource ".." was a part of the path."""
    key = ("default", "a")
    async with Client(Nowhere(), user_agent="test/1") as client:
        for call in (
            client.get(CONFIG_MAP, key, subresource=text),
            client.apply(CONFIG_MAP, config_map("a"), subresource=text),
            client.create(CONFIG_MAP, config_map("a"), subresource=text),
            client.merge_patch(CONFIG_MAP, key, {}, subresource=text),
            client.json_patch(CONFIG_MAP, key, [], subresource=text),
            client.list(CONFIG_MAP, label_selector=f"({text}"),
        ):
            with pytest.raises(OptionError) as refused:
                await call
            assert len(str(refused.value)) < 400
