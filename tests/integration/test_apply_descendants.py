"""ApplyDescendants on a real API server: what its first apply may touch, and which versions it may call its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from bonny.client.api import Client
from bonny.client.config import Kubeconfig
from bonny.client.errors import Conflict
from bonny.core.fights import Fights
from bonny.core.objects import Item, decode_item
from bonny.core.records import AppliedRecord
from bonny.errors import ForeignObject
from bonny.kinds import Kind, Owned, Scope
from bonny.resource import MANAGED_BY, OWNER_UID, Key, Resource
from bonny.steps.apply_descendants import ApplyDescendants
from bonny.steps.child import NO_VERSION
from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from tests.support import handwritten
from tests.support.tokens import token_of

DEPLOYMENT = Owned("apps/v1", "Deployment")
CONFIG_MAP = Owned("v1", "ConfigMap")
WIDGET = Owned("example.com/v1", "Widget", plural="widgets", scope=Scope.NAMESPACED)
CHILD = Key("default", "noted")
OWNER = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "owner", "namespace": "default", "uid": "1ef1ef1e-0000-4000-8000-000000000000"},
}


class Place:
    """A context whose store shows what the test says, and which notes the versions that were called own."""

    operator = "op"
    manager = "op/Noted"
    owns = (DEPLOYMENT, CONFIG_MAP)
    up_to_date = True

    def __init__(self, client: Client) -> None:
        self.client = client
        self.applied_records: dict[tuple[Kind, Key], AppliedRecord] = {}
        self.fights = Fights()
        self.shown: Item | None = None
        self.own: list[str] = []
        self.wanted_names: list[Key] = []
        """Names that are taken by somebody else."""

    def observe(self, kind: Kind, key: Key) -> tuple[Item | None, bool]:
        return self.shown, True

    def observed(self, descendant: Mapping[str, Any]) -> Resource | None:
        return None

    def labels(self, owner_uid: str) -> dict[str, str]:
        return {MANAGED_BY: self.operator, OWNER_UID: owner_uid}

    def wait_for_name(self, kind: Kind, key: Key) -> None:
        self.wanted_names.append(key)

    @contextmanager
    def writing(self, kind: Kind, key: Key) -> Iterator[Callable[[str], None]]:
        yield self.own.append


@pytest.fixture
async def place(sandbox: Sandbox) -> AsyncIterator[Place]:
    async with Client(Kubeconfig(str(sandbox.kubeconfig)), user_agent="tests/1") as client:
        yield Place(client)


async def apply(place: Place, *, image: str) -> None:
    """What a handler registers; the server stores the CPU in another spelling, so it never equals what was sent."""
    labels = {"app": CHILD.name}
    container = {"name": "main", "image": image, "resources": {"limits": {"cpu": "1000m"}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    axn = token_of(OWNER, context=place)
    axn.register_descendant(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": CHILD.name},
            "spec": {"selector": {"matchLabels": labels}, "template": template},
        },
        omit_owner_ref=True,
    )
    await ApplyDescendants()(axn)


async def test_the_version_of_an_apply_that_changed_nothing_is_not_called_own(place: Place) -> None:
    """Regression: at a restart, a Deployment that became available just before an apply in vain stayed unnoticed, for
    the event of its status was taken for our own."""
    await apply(place, image="nginx:1")
    created = await place.client.get(DEPLOYMENT, CHILD.name, namespace=CHILD.namespace)
    assert place.own == [created["metadata"]["resourceVersion"]]
    # The store has yet to show what somebody else does; what was sent last time is forgotten, as after a restart.
    place.shown = decode_item(msgspec.json.encode(created))
    place.applied_records.clear()
    status = {"status": {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1}}
    foreign = await place.client.merge_patch(DEPLOYMENT, CHILD, status, subresource="status")

    await apply(place, image="nginx:1")

    assert foreign["metadata"]["resourceVersion"] not in place.own
    assert len(place.own) == 1

    await apply(place, image="nginx:2")

    changed = await place.client.get(DEPLOYMENT, CHILD.name, namespace=CHILD.namespace)
    assert place.own[1:] == [changed["metadata"]["resourceVersion"]]


# --- the first apply of a name ----------------------------------------------------------------------------------------


async def first_apply(place: Place, *, size: str) -> None:
    """A handling whose stream shows no such child, whatever there is."""
    axn = token_of(OWNER, context=place)
    axn.register_descendant(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "first"}, "data": {"size": size}},
        omit_owner_ref=True,
    )
    await ApplyDescendants()(axn)


@pytest.fixture
def first(sandbox: Sandbox) -> Iterator[Callable[[], Resource | None]]:
    """What the API server has under the name of the child."""
    yield lambda: sandbox.get("v1", "ConfigMap", "first")
    sandbox.delete("v1", "ConfigMap", "first")


@pytest.mark.parametrize("kind", [CONFIG_MAP, WIDGET], ids=["core", "custom"])
async def test_the_api_server_takes_an_apply_at_version_1_only_where_nothing_exists(
    sandbox: Sandbox, place: Place, kind: Kind
) -> None:
    """Not documented as "create only", so it is pinned here: docs/decisions/0017."""
    sandbox.apply(crds(handwritten.operator.crds, "example.com"))
    resource: Resource = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "pinned", "namespace": "default", "resourceVersion": NO_VERSION},
    }

    made, created = await place.client.apply(kind, resource, manager="one", force=False)
    assert created
    assert made["metadata"]["resourceVersion"] != NO_VERSION
    for manager in ("one", "another"):
        for force in (False, True):
            with pytest.raises(Conflict) as refused:
                await place.client.apply(kind, resource, manager=manager, force=force)
            assert refused.value.status == 409
    key = Key("default", "pinned")
    assert await place.client.get(kind, key.name, namespace=key.namespace) == made
    await place.client.delete(kind, key)
    again, created = await place.client.apply(kind, resource, manager="one", force=False)
    assert created
    assert again["metadata"]["uid"] != made["metadata"]["uid"]
    await place.client.delete(kind, key)


async def test_an_object_that_a_stream_does_not_show_is_neither_overwritten_nor_taken_over(
    sandbox: Sandbox, place: Place, first: Callable[[], Resource | None]
) -> None:
    """Regression: between a read and an apply that is not forced, a stranger's object became ours; it is one request
    now, and there is no between."""
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "first", "namespace": "default"}}
    sandbox.apply({**theirs, "data": {"theirs": "precious"}})
    before = first()

    with pytest.raises(ForeignObject, match="ConfigMap default/first exists and is not ours"):
        await first_apply(place, size="1")

    assert first() == before
    assert place.own == []
    assert place.wanted_names == [Key("default", "first")]


async def test_our_own_child_that_a_stream_does_not_show_stays_as_it_is(
    place: Place, first: Callable[[], Resource | None]
) -> None:
    """Made before a restart, or a moment ago: what the refused creation met is ours, and is treated as such."""
    await first_apply(place, size="1")
    before = first()
    assert before is not None
    for restarted in (True, False):
        if restarted:
            place.applied_records.clear()
        await first_apply(place, size="1")
        assert first() == before

    await first_apply(place, size="2")

    changed = first()
    assert changed is not None
    assert (changed["metadata"]["uid"], changed["data"]) == (before["metadata"]["uid"], {"size": "2"})
    assert place.own == [known["metadata"]["resourceVersion"] for known in (before, changed)]
