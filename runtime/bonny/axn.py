"""Axn: the token of one action event; handlers register their wishes on it, the last steps carry them out.

You need it in every handler and step. It says what happened (`action`, `resource`, `reasons`) and collects what shall
be so: descendants, status, conditions. Nothing is sent while a handler runs, so a handler test is: build, call, compare
(`bonny.testing.axn`).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar, cast

from .api import Version
from .client.api import Client
from .core.ledger import Witness
from .core.objects import Item
from .core.queue import Reason
from .errors import AlreadyApplied, OptionError
from .kinds import Kind, Owned
from .resource import Key, Resource, identify, key_of

__all__ = [
    "Action",
    "Axn",
    "Descendant",
    "HandlingFailure",
    "Observation",
    "StatusChange",
    "Workplace",
    "condition",
    "with_condition",
]

S = TypeVar("S")
S_co = TypeVar("S_co", covariant=True)
R = TypeVar("R")
V_co = TypeVar("V_co", covariant=True)

# The limit in the schema of a condition (meta/v1): a longer message would make the API server refuse the whole status.
LONGEST_MESSAGE: Final = 32_768

StatusChange: TypeAlias = Callable[[Resource], Resource | None]
"""Gets a status of its own to change; returns the new one, or None when it changed what it got."""


class Action(StrEnum):
    """What an action event is about; see docs/architecture.md for when each comes."""

    ADD = "add"
    MODIFY = "modify"
    RECONCILE = "reconcile"
    DELETE = "delete"


class HasSpec(Protocol[S_co]):
    """A version class with a typed spec."""

    @property
    def spec(self) -> S_co: ...


@dataclass(frozen=True, slots=True)
class Descendant:
    """An object that shall exist because the handled one does."""

    resource: Resource
    group: int
    omit_owner_ref: bool
    adopt: bool


@dataclass(frozen=True, slots=True)
class HandlingFailure:
    """Why a handling did not succeed, as the `Reconciled` condition tells it.

    `reason` is one word in CamelCase; `message` stays the same over retries and holds no content of objects.
    """

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Observation:
    """What is known of a live object. `known` is False while its kind is not followed or not in sync."""

    known: bool
    item: Item | None


class Workplace(Protocol):
    """What the handling of one object may use of the running operator."""

    operator: str
    """The operator's name; its descendants carry it as app.kubernetes.io/managed-by."""

    manager: str
    """The field manager of all writes: `<operator>/<controller>`."""

    owns: Sequence[Owned]
    witnesses: dict[tuple[Kind, Key], Witness]

    @property
    def client(self) -> Client:
        """Requests as the operator's identity."""

    def observe(self, kind: Kind, key: Key) -> Observation:
        """What the stores know of an owned object."""

    def observed(self, descendant: Mapping[str, Any]) -> Resource | None:
        """The live object of the kind and name of `descendant`, decoded anew."""

    @property
    def up_to_date(self) -> bool:
        """Whether the stream of the handled object shows what the server shows."""

    def contested(self, kind: Kind, key: Key) -> None:
        """The name is taken by an object that is not ours: when that changes, the handled object is run again."""

    def writing(self, kind: Kind, key: Key) -> AbstractContextManager[Callable[[str], None]]:
        """Surrounds a write to an object; what it yields is called with the version that the write made."""


class Axn(Generic[V_co]):
    """One action event on its way through the pipeline.

    `V_co` is the version class of the controller (`Axn[Widget]`); `Axn[Any]` for objects without one.
    """

    def __init__(
        self,
        *,
        action: Action,
        resource: Resource,
        version: type[Version] | None = None,
        reasons: frozenset[Reason] = frozenset(),
        controller: object = None,
        options: Mapping[str, Any] | None = None,
        kind: Kind | None = None,
        workplace: Workplace | None = None,
    ) -> None:
        self.action = action
        self.resource = resource
        """The object as a plain mapping; for `delete` its last known state."""
        self.reasons = reasons
        """Why the handler runs."""
        self.controller = controller
        self.options: Mapping[str, Any] = options or {}
        """The controller's own options."""
        self.kind = kind
        self.assigns: dict[str, Any] = {}
        """For users' steps: what they hand to later steps."""
        self.private: dict[str, Any] = {}
        """For libraries' steps."""
        self.halted = False
        self.requeue_seconds: float | None = None
        self.failure: HandlingFailure | None = None
        self.outdated = False
        """Set by steps: what the handler looked at was changed by this handling."""
        self._version = version
        self._spec: object = None
        self._workplace = workplace
        self._descendants: list[Descendant] = []
        self._status_changes: list[StatusChange] = []
        self._applied: set[str] = set()
        self._conditions: set[str] = set()
        self._looked_at: set[tuple[str, str, Key]] = set()
        self._sealed = False
        self._loop: asyncio.AbstractEventLoop | None = None

    # --- what happened ------------------------------------------------------------------------------------------------

    def validate(self) -> None:
        """For the step that calls the handler. Raises: `InvalidObject` naming the fields that do not fit the schema."""
        if self._version is not None and self._spec is None:
            self._spec = self._version.spec_of(self.resource)

    @property
    def spec(self: Axn[HasSpec[S]]) -> S:
        """The validated spec; for controllers of kinds without a version class, the plain mapping."""
        self.validate()
        spec: Any = self._spec if self._spec is not None else self.resource.get("spec", {})
        return cast("S", spec)

    @property
    def has_conditions(self) -> bool:
        """Whether the schema of the object's status has conditions."""
        return self._version is not None and self._version.has_conditions()

    @property
    def has_observed_generation(self) -> bool:
        """Whether the schema of the object's status has observedGeneration."""
        return self._version is not None and self._version.has_observed_generation()

    @property
    def key(self) -> Key:
        return key_of(self.resource)

    @property
    def workplace(self) -> Workplace:
        """For steps. Raises: `OptionError` in a handler test that sends something."""
        if self._workplace is None:
            raise OptionError("this Axn was built without a workplace: run what sends requests against a sandbox")
        return self._workplace

    @property
    def client(self) -> Client:
        """Requests beyond descendants and status. The controller's `rules` must allow them."""
        return self.workplace.client

    @property
    def operator(self) -> str:
        """The operator's name."""
        return self.workplace.operator

    def observed(self, descendant: Mapping[str, Any]) -> Resource | None:
        """The live object of that kind and name as the watch last told it, or None. The mapping is yours to change.

        A handler that looked at an object is run again when this very handling changed it, so what it concludes from
        what it saw does not stay outdated. Its kind must be one that the controller owns.
        Raises: `OptionError` for another kind. RBAC: list and watch, granted by `owns`.
        """
        metadata = descendant["metadata"]
        namespace = metadata.get("namespace") or self.key.namespace
        wanted = {**descendant, "metadata": {**metadata, "namespace": namespace}}
        self._looked_at.add(self._named(wanted))
        return self.workplace.observed(wanted)

    def looked_at(self, resource: Mapping[str, Any]) -> bool:
        """For steps: whether the handler asked for this object by `observed`."""
        return self._named(resource) in self._looked_at

    def identifier(self) -> tuple[str, str, str]:
        """(namespace/name, apiVersion, Kind/action), for logs."""
        return str(self.key), self.resource.get("apiVersion", ""), f"{self.resource.get('kind', '')}/{self.action}"

    def call(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """Run `coroutine` on the operator's loop from a `def` handler's thread, and wait for its result.

        Raises: what the coroutine raises; `AlreadyApplied` once the handler's time is over; `OptionError` elsewhere.
        """
        if self._sealed or self._loop is None:
            coroutine.close()
            self._must_be_open()
            raise OptionError("axn.call is for `def` handlers: in an `async def` handler, await the coroutine")
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def lend_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        """For the step that starts a `def` handler's thread."""
        self._loop = loop

    # --- what shall be so ---------------------------------------------------------------------------------------------

    def register_descendant(
        self, resource: Resource, *, group: int = 0, omit_owner_ref: bool = False, adopt: bool = False
    ) -> None:
        """Ask for `resource` to exist as given; what others set on it stays.

        Groups are applied in ascending order, the objects of one group at the same time. The owner reference is left
        out where Kubernetes allows none (across namespaces, cluster-scoped under a namespaced owner) or on request.
        `adopt` takes over an object of this name that is not ours. Registering a name again replaces it.

        Raises: `AlreadyApplied`; `OptionError` when it has no apiVersion, kind or name.
        RBAC: create and patch, granted by `owns`.
        """
        self._may_change("descendants")
        if self.action is Action.DELETE:
            raise OptionError(f"{identify(self.resource)} is gone and can have no new descendants: use axn.client")
        metadata = resource.get("metadata") or {}
        if not (resource.get("apiVersion") and resource.get("kind") and metadata.get("name")):
            raise OptionError("a descendant needs apiVersion, kind and metadata.name")
        named = self._named(resource)
        self._descendants = [known for known in self._descendants if self._named(known.resource) != named]
        self._descendants.append(Descendant(resource, group, omit_owner_ref, adopt))

    @property
    def descendants(self) -> list[Resource]:
        """What was registered, in order of group, then of registration."""
        return [descendant.resource for descendant in sorted(self._descendants, key=lambda known: known.group)]

    def descendant_groups(self) -> Iterator[list[Descendant]]:
        """For steps: the registered descendants, group by group."""
        for group in sorted({descendant.group for descendant in self._descendants}):
            yield [descendant for descendant in self._descendants if descendant.group == group]

    def update_status(self, change: StatusChange) -> None:
        """Change the status: `change` gets what this controller set so far and returns what it shall be.

        It may be called again on a newer status after a conflict, so it should do nothing else.
        Raises: `AlreadyApplied`. RBAC: patch <plural>/status, granted for your own kinds.
        """
        self._may_change("status")
        self._status_changes.append(change)

    def set_condition(
        self,
        type: str,  # noqa: A002  the API's own word
        status: bool | None,
        *,
        message: str | None = None,
        reason: str | None = None,
    ) -> None:
        """Set the condition `type` to True, False or (None) Unknown; lastTransitionTime moves only when that changes.

        `reason` is one CamelCase word; default: the type for True, `Not<type>` for False, `Unknown` for None.
        Raises: `AlreadyApplied`; `OptionError` for any other status.
        """
        wanted = condition(type, status, message=message, reason=reason, of=self.resource)
        self.update_status(lambda known: with_condition(known, wanted))
        self._conditions.add(type)

    def status_from(self, base: Resource) -> Resource:
        """For steps and tests: the registered changes, made to a status of `base`, which stays as it is."""
        status: Resource = _copied(base)
        for change in self._status_changes:
            changed = change(status)
            status = status if changed is None else changed
        return _steadied(status, base, self._conditions)

    @property
    def status(self) -> Resource:
        """What was registered, on an empty status."""
        return self.status_from({})

    @property
    def conditions(self) -> dict[str, Resource]:
        """The registered conditions by type."""
        return {condition["type"]: condition for condition in self.status.get("conditions", ())}

    def requeue_after(self, seconds: float) -> None:
        """Run the handler again after so many seconds, as `reconcile`, whether or not something changed."""
        if not 0 < seconds < math.inf:
            raise OptionError(f"requeue_after({seconds}): use more than 0 seconds, or raise Retry for another try")
        self.requeue_seconds = seconds

    def halt(self) -> None:
        """Let no further step run for this event."""
        self.halted = True

    # --- states -------------------------------------------------------------------------------------------------------

    def mark_applied(self, what: str) -> None:
        """For steps: `what` (descendants, status) was sent; changing it from now on raises `AlreadyApplied`."""
        self._applied.add(what)

    def seal(self) -> None:
        """For the worker: the handler's time is over; whatever it still registers or calls raises `AlreadyApplied`."""
        self._sealed = True

    def _named(self, resource: Mapping[str, Any]) -> tuple[str, str, Key]:
        """What makes two mappings speak of the same object; without a namespace they are in that of the handled one."""
        namespace, name = key_of(resource)
        return resource["apiVersion"], resource["kind"], Key(namespace or self.key.namespace, name)

    def _must_be_open(self) -> None:
        if self._sealed:
            raise AlreadyApplied(f"the time for handling {identify(self.resource)} is over: nothing more is taken")

    def _may_change(self, what: str) -> None:
        self._must_be_open()
        if what in self._applied:
            raise AlreadyApplied(f"the {what} of {identify(self.resource)} were already applied: register them before")


def condition(
    type: str,  # noqa: A002  the API's own word
    status: bool | None,
    *,
    of: Resource,
    message: str | None = None,
    reason: str | None = None,
) -> Resource:
    """A condition of the object `of`, but for its lastTransitionTime."""
    if status not in (True, False, None):
        raise OptionError(f"the status of condition {type} is {status!r}: use True, False or None")
    # A type may have a domain, hyphens and dots (`example.com/Ready`), a reason may not.
    word = "".join(filter(str.isalnum, type.rpartition("/")[2]))
    words = {True: word, False: f"Not{word}", None: "Unknown"}
    made = {
        "type": type,
        "status": {True: "True", False: "False", None: "Unknown"}[status],
        "reason": reason or words[status],
        "message": (message or "")[:LONGEST_MESSAGE],
    }
    generation = of["metadata"].get("generation")
    return {**made, "observedGeneration": generation} if generation else made


def with_condition(status: Resource, wanted: Resource) -> Resource:
    """`status` with the condition `wanted` in the place of the one of its type."""
    conditions = list(status.get("conditions") or ())
    position = next((at for at, known in enumerate(conditions) if known.get("type") == wanted["type"]), None)
    before = {} if position is None else conditions[position]
    same = before.get("status") == wanted["status"] and "lastTransitionTime" in before
    moved = before["lastTransitionTime"] if same else datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    merged = {**wanted, "lastTransitionTime": moved}
    if position is None:
        conditions.append(merged)
    else:
        conditions[position] = merged
    return {**status, "conditions": conditions}


def _steadied(status: Resource, base: Resource, types: Set[str]) -> Resource:
    """`status`, with the times of `base` for the conditions that were changed and changed back, which is no move."""
    stood = {known.get("type"): known for known in base.get("conditions") or () if "lastTransitionTime" in known}
    conditions = [
        {**known, "lastTransitionTime": stood[known["type"]]["lastTransitionTime"]}
        if known.get("type") in types and stood.get(known["type"], {}).get("status") == known["status"]
        else known
        for known in status.get("conditions") or ()
    ]
    return {**status, "conditions": conditions} if conditions else status


def _copied(value: Any) -> Any:
    """A copy of a JSON value. It has neither cycles nor shared parts, so copy.deepcopy would look for them in vain."""
    if isinstance(value, dict):
        return {name: _copied(item) for name, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value
