"""Descendants: groups that are applied one after the other, and children without an owner reference.

The namespace must be there before a pod can be created in it, so it is in an earlier group. None of the three children
can have an owner reference: two belong to no namespace, one to another than its owner. Kubernetes' garbage collector
does not see them, but with `finalize` the runtime deletes them by their label when their owner goes.
"""

from bonny import Axn, Controller, Field, Operator, Owned, Resource, Spec, Status, Version, WithConditions


class WorkspaceSpec(Spec):
    """The desired state."""

    image: str = Field(default="registry.example.com/shell:1.0.0", description="Container image.")
    storage: str = Field(default="1Gi", description="How much it can store.")


class WorkspaceStatus(Status, WithConditions):
    """The observed state."""


class Workspace(Version):
    """A namespace with a pod, and a volume."""

    kind = "Workspace"
    plural = "workspaces"
    version = "v1"
    storage = True
    hub = True
    spec: WorkspaceSpec
    status: WorkspaceStatus


class WorkspaceController(Controller[Workspace]):
    owns = (Owned("v1", "Namespace"), Owned("v1", "Pod"), Owned("v1", "PersistentVolume"))

    async def reconcile(self, axn: Axn[Workspace]) -> None:
        name = axn.resource["metadata"]["name"]
        axn.register_descendant(namespace_for(name), group=-1)
        axn.register_descendant(pod_for(name, axn.spec))
        axn.register_descendant(volume_for(name, axn.spec))

    async def finalize(self, axn: Axn[Workspace]) -> None:
        """Nothing of our own: that it is there gives each Workspace a finalizer, and the runtime time to clean up."""


def namespace_for(name: str) -> Resource:
    """`my-ns` for the Workspace `my`."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{name}-ns"}}


def pod_for(name: str, spec: WorkspaceSpec) -> Resource:
    """The pod, in the namespace that is made for it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": f"{name}-ns", "name": f"{name}-pod"},
        "spec": {"containers": [{"name": "shell", "image": spec.image}]},
    }


def volume_for(name: str, spec: WorkspaceSpec) -> Resource:
    """The volume; it belongs to no namespace."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{name}-pv"},
        "spec": {
            "capacity": {"storage": spec.storage},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": f"/srv/workspaces/{name}"},
        },
    }


operator = Operator(name="workspaces", group="workspaces.example.com", controllers=[WorkspaceController])
