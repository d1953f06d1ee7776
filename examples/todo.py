"""Todo: lists of tasks as objects, and an app that shows some of them; two kinds and two controllers in one operator.

An app does not own the lists that it shows, so their kind is in `related`: when a list is created, changed or deleted,
the apps that refer to it are reconciled.
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
    Scope,
    Spec,
    Status,
    Version,
    WithConditions,
    WithObservedGeneration,
)
from bonny.kinds import Related

GROUP = "todo.example.com"
IMAGE = "docker.io/nginxinc/nginx-unprivileged:1.29"
PORT = 8080


class TodoSpec(Spec):
    """The desired state."""

    title: str
    tasks: list[str] = Field(default_factory=list, description="All tasks.")
    done: list[str] = Field(default_factory=list, description="Completed tasks.")


class TodoStatus(Status, WithConditions, WithObservedGeneration):
    """The observed state."""

    open: int = 0


class Todo(Version):
    """A list of tasks."""

    kind = "Todo"
    plural = "todos"
    version = "v1"
    storage = True
    hub = True
    spec: TodoSpec
    status: TodoStatus
    columns = (Column("Title", "string", ".spec.title"), Column("Open", "integer", ".status.open"), AGE)


class TodoAppSpec(Spec):
    """The desired state."""

    shows: list[str] = Field(default_factory=list, description="Names of Todos in the same namespace.")
    replicas: int = Field(default=1, ge=0)


class TodoAppStatus(Status, WithConditions, WithObservedGeneration):
    """The observed state."""


class TodoApp(Version):
    """A web page with lists of tasks."""

    kind = "TodoApp"
    plural = "todoapps"
    version = "v1"
    storage = True
    hub = True
    spec: TodoAppSpec
    status: TodoAppStatus


class TodoController(Controller[Todo]):
    async def reconcile(self, axn: Axn[Todo]) -> None:
        left = [task for task in axn.spec.tasks if task not in axn.spec.done]
        axn.update_status(lambda status: {**status, "open": len(left)})
        axn.set_condition("Done", not left, message=f"{len(left)} of {len(axn.spec.tasks)} are open")


class TodoAppController(Controller[TodoApp]):
    owns = (Owned("v1", "ConfigMap"), Owned("apps/v1", "Deployment"), Owned("v1", "Service"))
    related = (
        Related(
            f"{GROUP}/v1",
            "Todo",
            plural="todos",
            scope=Scope.NAMESPACED,
            named_by=lambda app: app["spec"].get("shows", []),
        ),
    )

    async def reconcile(self, axn: Axn[TodoApp]) -> None:
        found = {name: axn.observed(todo_named(name)) for name in axn.spec.shows}
        missing = [name for name, todo in found.items() if todo is None]
        axn.register_descendant(page_for(axn.resource, [todo for todo in found.values() if todo is not None]))
        axn.register_descendant(deployment_for(axn.resource, replicas=axn.spec.replicas))
        axn.register_descendant(service_for(axn.resource))
        axn.set_condition("Complete", not missing, message=f"missing: {', '.join(missing) or 'none'}")


def todo_named(name: str) -> Resource:
    """The reference of a Todo for `axn.observed`."""
    return {"apiVersion": f"{GROUP}/v1", "kind": "Todo", "metadata": {"name": name}}


def page_for(app: Resource, todos: list[Resource]) -> Resource:
    """The page as a ConfigMap; the kubelet brings a changed one into the running pods."""
    text = "\n".join(line for todo in todos for line in lines_of(todo["spec"]))
    name = app["metadata"]["name"]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"index.html": text}}


def lines_of(spec: Resource) -> list[str]:
    """A list as text."""
    done = spec.get("done", [])
    return [spec["title"], *(f"[{'x' if task in done else ' '}] {task}" for task in spec.get("tasks", []))]


def deployment_for(app: Resource, *, replicas: int) -> Resource:
    """The web servers."""
    name = app["metadata"]["name"]
    container = {
        "name": "web",
        "image": IMAGE,
        "ports": [{"containerPort": PORT}],
        "volumeMounts": [{"name": "page", "mountPath": "/usr/share/nginx/html"}],
    }
    pod = {"containers": [container], "volumes": [{"name": "page", "configMap": {"name": name}}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
        },
    }


def service_for(app: Resource) -> Resource:
    """The one address of all of them."""
    name = app["metadata"]["name"]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": PORT}]},
    }


operator = Operator(name="todo", group=GROUP, controllers=[TodoController, TodoAppController])
