"""Steps: a token whose requests are written down instead of sent, for what one step decides by itself.

`Script` stands where the client is. It gives the answers that the test wrote, in their order, and knows nothing of what
an API server would say. Whatever hangs on the server is tested on one (tests/integration, tests/faults).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import msgspec

from bonny import Kind, Owned, Resource
from bonny.client.errors import Refusal, refusal
from bonny.core.fights import Fights
from bonny.core.objects import Failure, Item, decode_item
from bonny.core.records import AppliedRecord
from bonny.engine.context import ReconcileContext
from bonny.engine.reconcile import Reconcile
from bonny.events import Event
from bonny.kinds import Scope
from bonny.resource import Key
from tests.support.tokens import token_of
from tests.support.widget import Widget, widget

MANAGER = "op/WidgetController"
WIDGET = Kind("example.com/v1", "Widget", plural="widgets", scope=Scope.NAMESPACED)
CONFIG_MAP = Owned("v1", "ConfigMap")


def conflict() -> Refusal:
    return refusal(Failure(409, "Conflict", ""), verb="patch", resource="widgets default/w1")


def item(resource: Resource) -> Item:
    return decode_item(msgspec.json.encode(resource))


def owned(resource: Resource, fields: Resource, *, subresource: str = "") -> Resource:
    """`resource` as it is when our apply has set these fields."""
    entry = {"apiVersion": resource["apiVersion"], "manager": MANAGER, "operation": "Apply", "fieldsV1": fields}
    entry |= {"subresource": subresource} if subresource else {}
    metadata = {**resource["metadata"], "managedFields": [*resource["metadata"].get("managedFields", ()), entry]}
    return {**resource, "metadata": metadata}


class Script:
    """A context and its client in one. Each answer is given once; one that is an exception is raised."""

    operator = "op"
    manager = MANAGER
    finalizer = "example.com/op"
    up_to_date = True
    wrote = False
    offline = False
    labels = ReconcileContext.labels

    def __init__(self, *answers: Resource | Exception | None, children: Sequence[Resource] = ()) -> None:
        self.owns: Sequence[Owned] = (CONFIG_MAP,)
        self.applied_records: dict[tuple[Kind, Key], AppliedRecord] = {}
        self.fights = Fights()
        self.requests: list[tuple[str, Any]] = []
        """Verb, and what was sent."""
        self.recorded: list[tuple[Resource, Event]] = []
        self._answers = list(answers)
        self._children = children

    @property
    def client(self) -> Any:
        return self

    def _answer(self, verb: str, sent: Any) -> Any:
        self.requests.append((verb, sent))
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def get(self, kind: Kind, name: str, *, namespace: str | None = None, cut: bool = False) -> Resource:
        return cast("Resource", self._answer("get", (kind.kind, namespace, name)))

    async def apply(self, kind: Kind, resource: Resource, **options: Any) -> tuple[Resource, bool]:
        verb = "dry run" if options.get("dry_run") else "apply"
        return cast("Resource", self._answer(verb, resource)), False

    async def json_patch(self, kind: Kind, key: Key, patch: Sequence[Mapping[str, Any]]) -> Resource:
        return cast("Resource", self._answer("patch", patch))

    async def delete(self, kind: Kind, key: Key, **preconditions: str | None) -> None:
        self._answer("delete", (kind.kind, key, preconditions))

    def observe(self, kind: Kind, key: Key) -> tuple[Item | None, bool]:
        found = [item(child) for child in self._children if (child["kind"], item(child).key) == (kind.kind, key)]
        return next(iter(found), None), True

    def children(self, owner_uid: str) -> list[tuple[Owned, Item]] | None:
        return [(CONFIG_MAP, item(child)) for child in self._children]

    def wait_for_name(self, kind: Kind, key: Key) -> None: ...

    @contextmanager
    def writing(self, kind: Kind, key: Key) -> Iterator[Callable[[str], None]]:
        yield lambda _: None

    @contextmanager
    def deleting(self, kind: Kind, key: Key, uid: str) -> Iterator[None]:
        yield

    def emit(self, regarding: Resource, event: Event) -> None:
        self.recorded.append((regarding, event))


def token(script: Script, resource: Resource | None = None, **fields: Any) -> Reconcile[Any]:
    """The token of a reconcile of a Widget, as a worker makes it."""
    shown = resource or widget()
    handled = msgspec.json.decode(msgspec.json.encode(shown))
    return token_of(handled, version=Widget, kind=WIDGET, shown=item(shown), context=script, **fields)
