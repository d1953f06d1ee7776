"""Client: how kinds and objects are named in a request, and where its errors are imported from."""

from __future__ import annotations

from typing import Any

import pytest

import bonny.client
from bonny import Key, Kind
from bonny.client import ApiError
from bonny.client.api import AnyKind, Client, Name
from bonny.client.request import ApiRequest
from bonny.client.transport import Answer
from bonny.errors import OptionError
from tests.support.widget import Widget


class Noting(Client):
    """Notes its requests; each is answered by an empty object."""

    def __init__(self, **options: Any) -> None:
        super().__init__(None, user_agent="shop/1.0", **options)  # type: ignore[arg-type]
        self.sent: list[ApiRequest] = []

    async def exchange(self, request: ApiRequest, *, ends: float | None = None) -> Answer:
        self.sent.append(request)
        return Answer(200, {}, b"{}")


@pytest.mark.parametrize(
    ("kind", "name", "path"),
    [
        (Kind("v1", "Pod"), Key("default", "a"), "/api/v1/namespaces/default/pods/a"),
        (Kind("v1", "Pod"), ("default", "a"), "/api/v1/namespaces/default/pods/a"),
        (Kind("v1", "Node"), "n1", "/api/v1/nodes/n1"),
        (Kind("v1", "Node"), Key("", "n1"), "/api/v1/nodes/n1"),
        (Widget, ("default", "w"), "/apis/example.com/v1/namespaces/default/widgets/w"),
    ],
)
async def test_an_object_is_named_in_each_natural_way(kind: AnyKind, name: Name, path: str) -> None:
    client = Noting(group="example.com")
    await client.get(kind, name)
    await client.merge_patch(kind, name, {})
    await client.json_patch(kind, name, [])
    await client.delete(kind, name)
    if not isinstance(name, str):
        await client.get(kind, name[1], namespace=name[0])
    assert [request.path for request in client.sent] == [path] * len(client.sent)


@pytest.mark.parametrize(
    ("kind", "name", "options", "message"),
    [
        (Kind("v1", "Pod"), "a", {}, "cannot get pods a: name its namespace, too"),
        (Kind("v1", "Pod"), Key("", "a"), {}, "cannot get pods a: name its namespace, too"),
        (
            Kind("apps/v1", "Deployment"),
            "d",
            {},
            "cannot get deployments.apps d: name its namespace, too",
        ),
        (
            Kind("v1", "Node"),
            "n1",
            {"namespace": "default"},
            "cannot get nodes default/n1: leave out the namespace: it is in none",
        ),
    ],
)
async def test_a_namespace_that_is_missing_or_too_much_is_named(
    kind: Kind, name: Name, options: dict[str, Any], message: str
) -> None:
    """Otherwise the API server answers that nothing is served there."""
    with pytest.raises(OptionError) as refused:
        await Noting().get(kind, name, **options)
    assert str(refused.value) == message


async def test_fields_belong_to_the_operator_unless_a_manager_is_named() -> None:
    client, settings = Noting(), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}}
    await client.apply(Kind("v1", "ConfigMap"), settings)
    await client.apply(Kind("v1", "ConfigMap"), settings, manager="another")
    assert [request.query["fieldManager"] for request in client.sent] == ["shop", "another"]


def test_every_error_of_a_request_is_imported_from_the_client() -> None:
    errors = {
        kind for kind in vars(bonny.client.errors).values() if isinstance(kind, type) and issubclass(kind, ApiError)
    }
    public = {kind for kind in vars(bonny.client).values() if isinstance(kind, type)}
    assert {kind.__name__ for kind in errors - public} == {"AnswerTooLarge"}  # only for callers with a limit
