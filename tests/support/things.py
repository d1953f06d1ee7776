"""Things: a kind for tests of the pipeline, whose objects say what shall become of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from bonny import Axn, Controller, Field, Operator, Owned, Resource, Spec, Status, Version, WithConditions
from bonny.api import WithObservedGeneration
from bonny_dev.sandbox import Sandbox

GROUP = "example.com"
THING = f"{GROUP}/v1", "Thing"
MERGE = "application/merge-patch+json"
_numbers = count(1)
_namespaces = count(1)


class ThingSpec(Spec):
    """What the user wants."""

    parts: list[str] = Field(default_factory=list, description="Names of ConfigMaps.")
    image: str = "nginx:1"
    label: str = "one"
    secret: str = ""
    size: int = Field(1, ge=0, le=100)


class ThingStatus(Status, WithConditions, WithObservedGeneration):
    """What is."""

    parts: int = 0
    phase: str = ""
    note: str | None = None


class Thing(Version):
    """Has parts."""

    kind = "Thing"
    plural = "things"
    version = "v1"
    storage = True
    hub = True
    spec: ThingSpec = ThingSpec()
    status: ThingStatus


def thing(name: str, *, namespace: str, **spec: Any) -> Resource:
    """A Thing, as a user applies it."""
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": metadata, "spec": spec}


def config_map(name: str, *, namespace: str = "", **data: str) -> Resource:
    """A ConfigMap; without a namespace it is in that of its owner."""
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def deployment(name: str, *, label: str = "") -> Resource:
    """A Deployment of pods with this label (default: its name)."""
    labels = {"app": label or name}
    container = {"name": "main", "image": "nginx:1"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


class PartsController(Controller[Thing]):
    """A ConfigMap for each of the parts."""

    owns = (Owned("v1", "ConfigMap"),)

    async def reconcile(self, axn: Axn[Thing]) -> None:
        """Register the parts."""
        for part in axn.spec.parts:
            axn.register_descendant(config_map(part, size=str(axn.spec.size)))
        axn.update_status(lambda status: {**status, "parts": len(axn.spec.parts)})
        axn.set_condition("Ready", True)


def operator_of(*controllers: type[Controller[Any]], **options: Any) -> Operator:
    """An operator with a name that no other test has used, so that its streams show it only what it made."""
    return Operator(name=f"things-{next(_numbers)}", group=GROUP, controllers=controllers, crds=[Thing], **options)


def condition_of(resource: Resource | None, type: str = "Reconciled") -> tuple[str, str]:  # noqa: A002  the API's word
    """Status and reason of a condition; empty while there is none."""
    for known in ((resource or {}).get("status") or {}).get("conditions", ()):
        if known["type"] == type:
            return known["status"], known["reason"]
    return "", ""


# --- as the test sees them --------------------------------------------------------------------------------------------


@contextmanager
def own_namespace(sandbox: Sandbox) -> Iterator[str]:
    """A namespace of its own; what is in it is removed afterwards."""
    name = f"of-things-{next(_namespaces)}"
    sandbox.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    remove_things(sandbox, namespace=name)
    sandbox.request("DELETE", f"/api/v1/namespaces/{name}/configmaps")


def remove_things(sandbox: Sandbox, *, namespace: str | None = None) -> None:
    """Delete them, whatever finalizers they have; default: in all namespaces."""
    for found in sandbox.items(*THING, namespace=namespace):
        path = path_of(found["metadata"]["name"], found["metadata"]["namespace"])
        sandbox.request("PATCH", path, {"metadata": {"finalizers": None}}, content_type=MERGE)
        sandbox.request("DELETE", path)


def path_of(name: str, namespace: str) -> str:
    """Of a Thing."""
    return f"/apis/{GROUP}/v1/namespaces/{namespace}/things/{name}"


def names(sandbox: Sandbox, namespace: str) -> set[str]:
    """The ConfigMaps in a namespace."""
    return {found["metadata"]["name"] for found in sandbox.items("v1", "ConfigMap", namespace=namespace)}


def spec(sandbox: Sandbox, name: str, namespace: str, **changes: Any) -> None:
    """Change the spec of a Thing."""
    answer = sandbox.request("PATCH", path_of(name, namespace), {"spec": changes}, content_type=MERGE)
    assert answer.status == 200, answer.body


def until_reconciled(sandbox: Sandbox, name: str, namespace: str, *told: str) -> Resource:
    """Return the Thing when its `Reconciled` says so (default: True, Succeeded) of its newest spec."""

    def check() -> Resource | None:
        found = sandbox.get(*THING, name, namespace=namespace)
        assert found is not None
        (known,) = (known for known in found["status"]["conditions"] if known["type"] == "Reconciled")
        if known["observedGeneration"] != found["metadata"]["generation"]:
            return None
        return found if (known["status"], known["reason"]) == (told or ("True", "Succeeded")) else None

    return sandbox.eventually(check)
