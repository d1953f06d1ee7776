"""Hello: a Deployment that serves a greeting, and a Service, for each Greeting.

The handler registers the desired objects; the steps after it apply them, and repair them when another client changes
them. The status follows the Deployment: its changes trigger `reconcile`, because its kind is in `owns`.
"""

from bonny import (
    AGE,
    Axn,
    Column,
    Controller,
    Field,
    Operator,
    Owned,
    Resource,
    Spec,
    Status,
    Version,
    WithConditions,
    WithObservedGeneration,
)

IMAGE = "registry.example.com/greeting-server:1.0.0"
PORT = 5000


class GreetingSpec(Spec):
    """The desired state."""

    greeting: str = Field(min_length=1, description="Text of the greeting.")
    replicas: int = Field(default=2, ge=0, description="Number of servers.")


class GreetingStatus(Status, WithConditions, WithObservedGeneration):
    """The observed state."""

    available: int = 0


class Greeting(Version):
    """Serves a greeting over HTTP."""

    kind = "Greeting"
    plural = "greetings"
    version = "v1"
    storage = True
    hub = True
    spec: GreetingSpec
    status: GreetingStatus
    columns = (
        Column("Greeting", "string", ".spec.greeting"),
        Column("Available", "integer", ".status.available"),
        AGE,
    )


class GreetingController(Controller[Greeting]):
    owns = (Owned("apps/v1", "Deployment"), Owned("v1", "Service"))

    async def reconcile(self, axn: Axn[Greeting]) -> None:
        deployment = deployment_for(axn.resource, axn.spec)
        axn.register_descendant(deployment)
        axn.register_descendant(service_for(axn.resource))

        live = axn.observed(deployment) or {}
        available = live.get("status", {}).get("availableReplicas", 0)
        wanted = axn.spec.replicas
        axn.update_status(GreetingStatus(available=available))
        axn.set_condition("Ready", available >= wanted, message=f"{available} of {wanted} are available")
        axn.success_event(reason="Greeting", message=f"{wanted} replicas serve {axn.spec.greeting!r}")


def deployment_for(greeting: Resource, spec: GreetingSpec) -> Resource:
    """The servers of the greeting."""
    name = greeting["metadata"]["name"]
    container = {
        "name": "greeter",
        "image": IMAGE,
        "env": [{"name": "GREETING", "value": spec.greeting}],
        "ports": [{"containerPort": PORT}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "replicas": spec.replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}},
        },
    }


def service_for(greeting: Resource) -> Resource:
    """The one address of all of them."""
    name = greeting["metadata"]["name"]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"selector": {"app": name}, "ports": [{"port": PORT}]},
    }


operator = Operator(name="hello", group="hello.example.com", controllers=[GreetingController])
