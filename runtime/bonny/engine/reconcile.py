"""Reconcile: one run for one object, as the steps and the worker see it.

You need it in a step that applies, writes or reports. A handler needs only its
base class, `Axn`: the change, and the desired state that it registers. Here is the outcome of that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from typing import Any, Final, TypeAlias

import msgspec

from ..axn import SHORTEST_WAIT, Axn, Descendant, State, V_co
from ..core.objects import Item, decode_item
from ..events import Event
from ..kinds import Kind, Owned
from ..resource import Key, Resource, gvk_of
from .context import ReconcileContext

Step: TypeAlias = "Callable[[Reconcile[Any]], Awaitable[object] | None]"
"""Takes the reconcile; a step that asks for an `Axn` gets it as that."""


class _Over:
    """The result of a step that has nothing to do: it can be awaited, and costs no coroutine."""

    def __await__(self) -> Generator[None, None, None]:
        yield from ()


OVER: Final = _Over()


class Reconcile(Axn[V_co]):
    """The token that steps get: an `Axn` with the outcome of what it registers."""

    outdated = False
    """Whether this reconcile changed an object that the handler observed."""

    applied: set[tuple[Kind, Key]] | None = None
    """Kind and key of each descendant, once the cluster has all of them."""

    stored: Resource | None = None
    """The object after the last status write."""

    # --- the object ---------------------------------------------------------------------------------------------------

    @property
    def context(self) -> ReconcileContext:
        """The parts of the running operator that a reconcile may use."""
        return self._context

    @property
    def shown(self) -> Item:
        """The object as the handler got it, unaffected by changes that the handler makes to `resource`."""
        return self._shown

    @shown.setter
    def shown(self, item: Item) -> None:
        self._shown = item

    def renew(self, resource: Resource) -> None:
        """For a step before the handler that wrote the object: `resource` is the object after that write.

        Of a metadata-only kind only the metadata is kept, as its stream shows it.
        """
        shown = ("apiVersion", "kind", "metadata") if self.kind.metadata_only else tuple(resource)
        self.resource = {name: resource[name] for name in shown}
        self._shown = decode_item(msgspec.json.encode(self.resource))
        self._spec = None

    def looked_at(self, resource: Mapping[str, Any]) -> bool:
        """Whether the handler looked at this object (`observed`), or at its kind (`children`, `related`)."""
        looked = bool(self._listed or self._looked_at)
        return looked and (gvk_of(resource) in self._listed or self._named(resource) in self._looked_at)

    def unwanted(self, children: Sequence[tuple[Owned, Item]]) -> list[tuple[Owned, Item]]:
        """The live children to prune: neither registered nor kept, nor under deletion, nor of a kind whose children
        stay."""
        names = [self._name_of(kind.gvk, child.key) for kind, child in children]
        wanted = self._kept | self._by_name().keys()
        # Two declarations of a kind may both select a child.
        wanted |= {name for name, (kind, _) in zip(names, children, strict=True) if not kind.prune}
        unwanted = [
            each
            for name, each in zip(names, children, strict=True)
            if name not in wanted and each[1].meta.deletion_timestamp is None
        ]
        # The handler could not keep what it was not shown, such as the last child that a former leader created.
        found = [each for each in unwanted if each[1].key in self._found.get(each[0].gvk, {each[1].key})]
        self.outdated = self.outdated or len(found) < len(unwanted)
        return found

    # --- the handler --------------------------------------------------------------------------------------------------

    def lend_loop(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """For the pipeline: give the thread of a `def` handler the loop for `call`; None when it has ended."""
        self._loop = loop

    def seal(self) -> None:
        """For the pipeline, after the handler's timeout: cancel its `call`; further registrations and calls raise
        `AlreadyApplied`."""
        self._sealed = True
        if self._calling is not None:
            self._calling.cancel()

    def wait(self, message: str, *, after: float | None = None) -> None:
        """For the pipeline: what is registered is applied, but the reconcile is not complete (`bonny.Wait`)."""
        self.waiting = message if self.waiting is None else f"{self.waiting}; {message}"
        if after is not None:
            self.requeue_after(after)

    # --- the desired state --------------------------------------------------------------------------------------------

    def mark_applied(self, state: State) -> None:
        """`state` was sent: changing it from now on raises `AlreadyApplied`."""
        self._states.add(state)

    def finish_descendants(self) -> None:
        """Let the hooks change the descendants. Objects that a hook adds get default options."""
        if not self._before_apply_descendants:
            return
        registered = self._by_name()
        resources = self.descendants
        for hook in reversed(self._before_apply_descendants):
            resources = hook(resources, self)
        final = {self._named(resource): resource for resource in resources}
        self._descendants = {
            name: replace(registered.get(name) or Descendant(name, resource), resource=resource)
            for name, resource in final.items()
        }

    def descendant_groups(self) -> Iterator[list[Descendant]]:
        """The registered descendants, level by level; the `group` of each is its level (`axn.register_descendant`)."""
        for _, group in groupby(self._ordered(), key=lambda each: each.group):
            yield list(group)

    @property
    def changes_descendants(self) -> bool:
        """Whether anything can be applied: a registration, a hook, or what was applied before and may be dropped."""
        return bool(self._descendants or self._before_apply_descendants or self._context.applied_records)

    @property
    def changes_status(self) -> bool:
        """Whether anything can change the status: a registration, a hook, or a part of the runtime's own."""
        own = self.has_conditions or self.has_observed_generation
        return own or bool(self._status_changes or self._before_apply_status)

    def finish_status(self, status: Resource) -> Resource:
        """The status after the hooks."""
        if not self._before_apply_status:
            return status
        resource: Resource = {**self.identity, "status": status}
        for hook in reversed(self._before_apply_status):
            resource = hook(resource, self)
        finished: Resource = resource.get("status") or {}
        return finished

    # --- the end ------------------------------------------------------------------------------------------------------

    def tell(self, event: Event) -> None:
        """Emit `event` at the end, even if the handler cleared or emitted its own."""
        self._events.append((event, False))

    def requeue_wait(self) -> float | None:
        """Seconds from the end of the reconcile until the handler runs again; None when nothing asked for that."""
        if self.requeue_seconds is None or self.requeue_time is None:
            return self.requeue_seconds
        left = (self.requeue_time - datetime.now(UTC)).total_seconds()
        return min(self.requeue_seconds, max(left, SHORTEST_WAIT))

    def last_calls(self) -> list[Callable[[], None]]:
        """For the pipeline: what emits the remaining events, also after a timeout, and the hooks for the very end."""
        return [*self._emissions(), *(partial(hook, self) for hook in reversed(self._after_processed))]
