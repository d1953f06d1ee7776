"""Token: builds an `Axn` for a handler test, without a server.

token = testing.axn(widget(size=3), version=Widget)
await WidgetController().reconcile(token)
assert [child["data"] for child in token.descendants] == [{"size": "3"}]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from ..api import Version
from ..axn import Action, Axn, Observation
from ..client.api import Client
from ..core.ledger import Witness
from ..core.queue import Reason
from ..errors import OptionError
from ..kinds import Kind, Owned
from ..resource import Key, Resource, key_of

__all__ = ["axn"]

V = TypeVar("V", bound=Version)


def axn(
    resource: Resource,
    *,
    version: type[V],
    action: Action | str = Action.ADD,
    observed: Iterable[Resource] = (),
    reasons: Iterable[Reason] = (),
    options: Mapping[str, Any] | None = None,
) -> Axn[V]:
    """The token of an action event on `resource`.

    `version` is the class that types its spec, and by which the object is checked and filled in as the API server does
    it; `observed` are the live objects that `axn.observed` finds.
    Raises: `InvalidObject` when the API server would refuse `resource`.
    """
    token: Axn[V] = Axn(
        action=Action(action),
        resource=version.check(resource),
        version=version,
        reasons=frozenset(reasons),
        options=options,
        workplace=_Bench(list(observed), namespace=key_of(resource).namespace),
    )
    token.validate()
    return token


class _Bench:
    """A workplace that knows some objects and cannot send anything."""

    operator = "test"
    manager = "test/Controller"

    def __init__(self, observed: Sequence[Resource], *, namespace: str) -> None:
        self.owns: Sequence[Owned] = ()
        self.witnesses: dict[tuple[Kind, Key], Witness] = {}
        self._namespace = namespace
        self._observed = {self._name(resource): resource for resource in observed}

    def _name(self, resource: Mapping[str, Any]) -> tuple[str, str, Key]:
        key = key_of(resource)
        return resource["apiVersion"], resource["kind"], Key(key.namespace or self._namespace, key.name)

    @property
    def client(self) -> Client:
        raise OptionError("a token of bonny.testing sends nothing: test what needs the API server against a sandbox")

    def observe(self, kind: Kind, key: Key) -> Observation:  # noqa: ARG002  the protocol's shape
        """Nothing is followed."""
        return Observation(known=False, item=None)

    def observed(self, descendant: Mapping[str, Any]) -> Resource | None:
        return self._observed.get(self._name(descendant))

    @property
    def up_to_date(self) -> bool:
        return True

    def contested(self, kind: Kind, key: Key) -> None:
        raise OptionError(f"a token of bonny.testing sends nothing: {kind.kind} {key} was to be written")

    def writing(self, kind: Kind, key: Key) -> AbstractContextManager[Callable[[str], None]]:
        raise OptionError(f"a token of bonny.testing sends nothing: {kind.kind} {key} was to be written")
