"""ApplyDescendants on a real API server: which versions it may call its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from bonny.axn import Action, Axn, Observation
from bonny.client.api import Client
from bonny.client.config import Kubeconfig
from bonny.core.ledger import Witness
from bonny.core.objects import Item, decode_item
from bonny.kinds import Kind, Owned
from bonny.resource import Key, Resource
from bonny.sandbox import Sandbox
from bonny.steps.apply_descendants import ApplyDescendants

DEPLOYMENT = Owned("apps/v1", "Deployment")
CHILD = Key("default", "noted")
OWNER = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "owner", "namespace": "default", "uid": "1ef1ef1e-0000-4000-8000-000000000000"},
}


class Place:
    """A workplace whose store shows what the test says, and which notes the versions that were called own."""

    operator = "op"
    manager = "op/Noted"
    owns = (DEPLOYMENT,)
    up_to_date = True

    def __init__(self, client: Client) -> None:
        self.client = client
        self.witnesses: dict[tuple[Kind, Key], Witness] = {}
        self.shown: Item | None = None
        self.own: list[str] = []

    def observe(self, kind: Kind, key: Key) -> Observation:
        return Observation(known=True, item=self.shown)

    def observed(self, descendant: Mapping[str, Any]) -> Resource | None:
        return None

    def contested(self, kind: Kind, key: Key) -> None: ...

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
    axn: Axn[Any] = Axn(action=Action.RECONCILE, resource=OWNER, workplace=place)
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
    place.witnesses.clear()
    status = {"status": {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1}}
    foreign = await place.client.merge_patch(DEPLOYMENT, CHILD, status, subresource="status")

    await apply(place, image="nginx:1")

    assert foreign["metadata"]["resourceVersion"] not in place.own
    assert len(place.own) == 1

    await apply(place, image="nginx:2")

    changed = await place.client.get(DEPLOYMENT, CHILD.name, namespace=CHILD.namespace)
    assert place.own[1:] == [changed["metadata"]["resourceVersion"]]
