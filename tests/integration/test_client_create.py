"""Creations whose answer is lost, on a real API server: nothing is made twice, nothing foreign is taken for ours."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

import pytest

from bonny.client.api import Client
from bonny.client.config import Kubeconfig
from bonny.client.errors import Conflict, Unreachable
from bonny.kinds import Kind
from bonny.resource import OWNER_UID, Resource
from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import CommitThenDrop, Drop, Effect, Fault, FaultProxy, ProxiedRequest, Respond

CONFIG_MAP = Kind("v1", "ConfigMap")
POD = Kind("v1", "Pod")
DEPLOYMENT = Kind("apps/v1", "Deployment")


@pytest.fixture
def proxy(sandbox: Sandbox) -> Iterator[FaultProxy]:
    with FaultProxy(sandbox) as started:
        yield started


@pytest.fixture
async def client(proxy: FaultProxy) -> AsyncIterator[Client]:
    async with Client(Kubeconfig(str(proxy.kubeconfig)), user_agent="create/1.0", timeout=10) as made:
        yield made


@pytest.fixture
def name() -> str:
    return f"made-{uuid.uuid4().hex[:8]}"


def is_(method: str) -> Callable[[ProxiedRequest], bool]:
    return lambda request: request.method == method


def lose(proxy: FaultProxy, *effects: Effect) -> None:
    """What happens to the next POSTs, one after the other."""
    for effect in effects:
        proxy.add(Fault(effect, on=is_("POST")))


def config_map(name: str, *, owner: str = "by reference", size: str = "1") -> Resource:
    """A ConfigMap of an owner that is named in one of the two ways, or of nobody."""
    metadata: Resource = {"name": name, "namespace": "default", "labels": {"a": "b"}, "annotations": {}}
    if owner == "by reference":
        metadata["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "u-1"}]
    if owner == "by label":
        metadata["labels"][OWNER_UID] = "u-1"
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"size": size}}


def counts(proxy: FaultProxy) -> tuple[int, int]:
    """POSTs and GETs."""
    return proxy.count(is_("POST")), proxy.count(is_("GET"))


@pytest.mark.parametrize("owner", ["by reference", "by label"])
@pytest.mark.parametrize(
    ("effects", "posts", "gets"),
    [
        pytest.param((), 1, 0, id="answered"),
        pytest.param((CommitThenDrop(),), 2, 1, id="answer-lost"),
        pytest.param((CommitThenDrop(), Drop()), 3, 1, id="answer-lost-and-then-the-request"),
        pytest.param((Drop(), CommitThenDrop()), 3, 1, id="request-lost-and-then-the-answer"),
        pytest.param((Drop(), Drop()), 3, 0, id="requests-lost"),
    ],
)
async def test_created_objects_are_returned_after_each_lost_answer(
    *,
    sandbox: Sandbox,
    proxy: FaultProxy,
    client: Client,
    name: str,
    owner: str,
    effects: Sequence[Effect],
    posts: int,
    gets: int,
) -> None:
    lose(proxy, *effects)

    made = await client.create(CONFIG_MAP, config_map(name, owner=owner))

    assert made == sandbox.get("v1", "ConfigMap", name)
    assert counts(proxy) == (posts, gets)


async def test_a_server_that_stays_away_is_told(proxy: FaultProxy, client: Client, name: str) -> None:
    lose(proxy, Drop(), Drop(), Drop())

    with pytest.raises(Unreachable):
        await client.create(CONFIG_MAP, config_map(name))

    assert counts(proxy) == (3, 0)


async def test_tries_and_waits_stay_within_the_deadline_of_one_request(proxy: FaultProxy, name: str) -> None:
    lose(proxy, Drop(), Drop(), Drop())
    async with Client(Kubeconfig(str(proxy.kubeconfig)), user_agent="create/1.0", timeout=0.4) as client:
        with pytest.raises(Unreachable):
            await client.create(CONFIG_MAP, config_map(name))

    assert counts(proxy) == (1, 0)


async def test_an_object_without_an_owner_cannot_be_told_from_somebody_elses(
    sandbox: Sandbox, proxy: FaultProxy, client: Client, name: str
) -> None:
    lose(proxy, CommitThenDrop())

    with pytest.raises(Conflict):
        await client.create(CONFIG_MAP, config_map(name, owner="nobody"))

    assert sandbox.get("v1", "ConfigMap", name)
    assert counts(proxy) == (2, 0)


@pytest.mark.parametrize(
    "theirs",
    [{"owner": "nobody"}, {"owner": "by label"}, {"size": "2"}],
    ids=["nobodys", "another-owners", "other-content"],
)
async def test_an_object_that_is_not_what_was_sent_is_not_taken_for_ours(
    sandbox: Sandbox, proxy: FaultProxy, client: Client, name: str, theirs: dict[str, Any]
) -> None:
    (before,) = sandbox.apply(config_map(name, **theirs))
    lose(proxy, Drop())

    with pytest.raises(Conflict):
        await client.create(CONFIG_MAP, config_map(name))

    assert sandbox.get("v1", "ConfigMap", name) == before
    assert counts(proxy) == (2, 1)


async def test_an_object_that_is_being_deleted_is_not_taken_for_ours(
    sandbox: Sandbox, proxy: FaultProxy, client: Client, name: str
) -> None:
    kept = config_map(name)
    kept["metadata"]["finalizers"] = ["example.com/kept"]
    sandbox.apply(kept)
    sandbox.delete("v1", "ConfigMap", name)
    lose(proxy, Drop())

    with pytest.raises(Conflict):
        await client.create(CONFIG_MAP, config_map(name))


async def test_a_conflict_that_was_answered_at_once_is_one(
    sandbox: Sandbox, proxy: FaultProxy, client: Client, name: str
) -> None:
    sandbox.apply(config_map(name))

    with pytest.raises(Conflict):
        await client.create(CONFIG_MAP, config_map(name))

    assert counts(proxy) == (1, 0)


async def test_without_leave_to_get_it_stays_a_conflict(proxy: FaultProxy, client: Client, name: str) -> None:
    lose(proxy, CommitThenDrop())
    proxy.add(Fault(Respond(403, b"no"), on=is_("GET")))

    with pytest.raises(Conflict):
        await client.create(CONFIG_MAP, config_map(name))


async def test_an_object_that_the_server_spells_otherwise_stays_a_conflict(
    proxy: FaultProxy, client: Client, name: str
) -> None:
    """It stores 1000m as 1. Rather a conflict too many than somebody else's object."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1000m"}}}
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    deployment = config_map(name)
    del deployment["data"]
    deployment |= {"apiVersion": "apps/v1", "kind": "Deployment"}
    deployment["spec"] = {"selector": {"matchLabels": {"a": "b"}}, "template": pod}
    lose(proxy, CommitThenDrop())

    with pytest.raises(Conflict):
        await client.create(DEPLOYMENT, deployment)


async def test_a_generated_name_is_never_sent_twice(
    sandbox: Sandbox, proxy: FaultProxy, client: Client, name: str
) -> None:
    generated = config_map("")
    del generated["metadata"]["name"]
    generated["metadata"]["generateName"] = name
    lose(proxy, CommitThenDrop())

    with pytest.raises(Unreachable):
        await client.create(CONFIG_MAP, generated)

    assert counts(proxy) == (1, 0)
    made = [found for found in sandbox.items("v1", "ConfigMap") if found["metadata"]["name"].startswith(name)]
    assert len(made) == 1


async def test_a_subresource_is_never_sent_twice(
    sandbox: Sandbox, proxy: FaultProxy, client: Client, name: str
) -> None:
    """A binding that was stored is refused when it comes again; an eviction would be a second one."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}}
    sandbox.apply({**pod, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "namespace": "default"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
    }
    lose(proxy, CommitThenDrop())

    with pytest.raises(Unreachable):
        await client.create(POD, binding, subresource="binding")

    bound = sandbox.get("v1", "Pod", name)
    assert bound is not None
    assert bound["spec"]["nodeName"] == "n1"
    assert counts(proxy) == (1, 0)
