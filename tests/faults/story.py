"""Story: the life of one Thing in a namespace of its own, told with and without a fault.

It is created with three children and a Deployment; changed, so that one child is dropped and the Deployment, which
cannot be changed, is replaced; and deleted, which its finalizer delays. A story with a fault must come to the same
state after each chapter as one without, and no object may have been created or deleted more often.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter
from enum import Enum
from typing import Any, Final

from bonny.resource import Resource
from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import Drop, Effect, Fault, ProxiedRequest, is_write
from tests.faults.scene import SEEN_SECONDS, Scene
from tests.support.processes import pipelined
from tests.support.things import GROUP, MERGE, THING, condition_of, path_of, spec, thing

NAME: Final = "t"
COLLECTIONS: Final = f"/apis/{GROUP}/v1/things", "/api/v1/configmaps", "/apis/apps/v1/deployments"
KINDS: Final = (THING, ("v1", "ConfigMap"), ("apps/v1", "Deployment"))
# What differs between two lives without a fault.
UNLIKE: Final = frozenset({"uid", "resourceVersion", "creationTimestamp", "managedFields", "namespace"})


class Chapter(Enum):
    """What is done to the Thing."""

    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"


class Story:
    """See the module."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._sandbox = scene.sandbox
        self.namespace = f"story-{secrets.token_hex(3)}"
        self._sandbox.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})
        self._uid = ""
        self._late: Fault | None = None

    # --- faults -------------------------------------------------------------------------------------------------------

    def is_write(self, request: ProxiedRequest) -> bool:
        """Whether the operator wants to change something here; that it tells of it by an event does not count."""
        of_ours = f"/namespaces/{self.namespace}/" in request.path and "/events" not in request.path
        return is_write(request) and of_ours

    @property
    def writes(self) -> int:
        """How many there were."""
        return self._scene.proxy.count(self.is_write)

    def strike(self, nth: int, effect: Effect, *, last: bool = False) -> Fault:
        """Let `effect` meet the n-th write from now on; with `last` no later one arrives, until `restart`."""
        seen = iter(range(1_000))
        fault = self._scene.proxy.add(Fault(effect, on=lambda request: self.is_write(request) and next(seen) == nth))
        if last:
            late = Fault(Drop(), on=lambda request: fault.hits > 0 and self.is_write(request), times=None)
            self._late = self._scene.proxy.add(late)
        return fault

    def restart(self) -> None:
        """Kill the operator, and start another one."""
        self._scene.operator.process.kill()
        self._scene.operator.process.wait()
        assert "please report" not in self._scene.operator.text
        if self._late is not None:
            self._scene.proxy.remove(self._late)
        self._scene.begin(pipelined())

    # --- chapters -----------------------------------------------------------------------------------------------------

    def begin(self, chapter: Chapter) -> None:
        match chapter:
            case Chapter.CREATED:
                (made,) = self._sandbox.apply(thing(NAME, namespace=self.namespace, parts=["a", "b", "far"]))
                self._uid = made["metadata"]["uid"]
            case Chapter.CHANGED:
                spec(self._sandbox, NAME, self.namespace, parts=["a", "far"], size=2, label="two")
            case Chapter.DELETED:
                self._sandbox.request("DELETE", path_of(NAME, self.namespace))

    def live(self) -> Resource:
        """The Thing."""
        found = self._sandbox.get(*THING, NAME, namespace=self.namespace)
        assert found is not None
        return found

    def patch(self, path: str, change: Resource) -> None:
        """Somebody else changes an object of the namespace, such as `configmaps/a`."""
        collection = next(known for known in COLLECTIONS if known.endswith(f"/{path.partition('/')[0]}"))
        root = collection.rpartition("/")[0]
        answer = self._sandbox.request(
            "PATCH", f"{root}/namespaces/{self.namespace}/{path}", change, content_type=MERGE
        )
        assert answer.status == 200, answer.body

    def settle(self) -> dict[str, Any]:
        """The state after a chapter that nothing disturbs."""

        def told() -> bool:
            found = self._sandbox.get(*THING, NAME, namespace=self.namespace)
            if found is None:
                return True
            handled = (found.get("status") or {}).get("observedGeneration") == found["metadata"]["generation"]
            return handled and condition_of(found) == ("True", "Succeeded")

        self._sandbox.eventually(told, within_seconds=SEEN_SECONDS)
        return self.state()

    def until(self, state: dict[str, Any]) -> None:
        """Return when the namespace holds this."""

        def same() -> bool:
            now = self.state()
            assert now == state, f"{now} is not {state}"
            return True

        self._sandbox.eventually(same, within_seconds=SEEN_SECONDS)

    def state(self) -> dict[str, Any]:
        """What the namespace holds, by kind and name, without what differs in each life."""
        found = [
            found
            for kind in KINDS
            for found in self._sandbox.items(*kind, namespace=self.namespace)
            if found["metadata"]["name"] != "kube-root-ca.crt"
        ]
        return {f"{known['kind']} {known['metadata']['name']}": self._alike(known) for known in found}

    def _alike(self, resource: Resource) -> Any:
        text = json.dumps(resource)
        return _without_times(json.loads(text.replace(self._uid, "its owner's") if self._uid else text))


def newest_version(sandbox: Sandbox) -> str:
    """Where `histories` may begin: versions count for the whole of etcd."""
    version: str = sandbox.request("GET", COLLECTIONS[0]).body["metadata"]["resourceVersion"]
    return version


def events(sandbox: Sandbox, collection: str, *, since: str) -> list[Any]:
    """What a watch tells of a collection, from then to now."""
    body = sandbox.request("GET", f"{collection}?watch=true&resourceVersion={since}&timeoutSeconds=1").body
    # A single line was decoded.
    return [json.loads(line) for line in body.splitlines()] if isinstance(body, str) else [body]


def events_of_things(sandbox: Sandbox, *, since: str) -> list[Any]:
    return events(sandbox, COLLECTIONS[0], since=since)


def histories(sandbox: Sandbox, *, since: str) -> dict[str, Counter[str]]:
    """How often each object was created and deleted, by namespace, as the API server's own watch tells it."""
    told: dict[str, Counter[str]] = {}
    for collection in COLLECTIONS:
        for event in events(sandbox, collection, since=since):
            if event["type"] in ("ADDED", "DELETED"):
                metadata = event["object"]["metadata"]
                what = f"{event['type']} {event['object']['kind']} {metadata['name']}"
                told.setdefault(metadata["namespace"], Counter())[what] += 1
    return told


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: _without_times(item) for name, item in value.items() if name not in UNLIKE}
        return {name: item for name, item in kept.items() if name != "lastTransitionTime"}
    if isinstance(value, list):
        # The order of conditions is that of their first writes, and means nothing.
        return sorted((_without_times(item) for item in value), key=json.dumps)
    return value
