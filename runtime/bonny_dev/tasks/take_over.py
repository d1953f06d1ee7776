"""Take over: the finalizers, annotations and field managers of another framework, on the objects of a cluster.

You need it when an operator of another framework was replaced by this one, and its objects stay.

- A finalizer is replaced by that of this operator in one write, so an object never lacks both.
- Annotations and the fields of the status in which the framework kept its own progress are removed.
- A child that this operator applied has two field managers. As long as the former one owns a field, the field stays
  when a handler no longer wants it. Its fields go to this operator, which decides at its next reconcile.

It keeps no state of its own: run again, it continues.
RBAC of the person: list and patch of the kinds and of their children, and patch of the status.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from bonny.client import Client, Conflict, Forbidden, Invalid, NotFound
from bonny.client.config import Cluster
from bonny.client.pages import pages
from bonny.errors import UsageError
from bonny.kinds import Kind
from bonny.operator import Operator
from bonny.resource import MANAGED_BY, Resource, identify, key_of

from ..install import described
from ..ways_in.sources import Traces, chosen
from .managed_fields import Fields, union

# Each try fails only if another client wrote the object since it was read.
TRIES: Final = 5
# Of the paths of one sentence; the others are counted.
SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one object: a merge patch and its effects in words; a problem if something has to stay."""

    patch: Resource = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    problem: str = ""


@dataclass(kw_only=True)
class TakeOver:
    """One run: the cluster, the traces to look for, and the changes so far."""

    client: Client
    operator: Operator
    traces: Traces
    back: bool
    dry_run: bool

    done: Counter[str] = field(default_factory=Counter)
    """How many objects got each change."""

    left: list[str] = field(default_factory=list)
    """A sentence for each object that could not be changed."""

    async def run(self) -> bool:
        """Change all objects; returns whether none is left."""
        print(f"looking at {await described(self.client)}", flush=True)
        for kind, ours in self._kinds().items():
            change = partial(self._backwards if self.back else self._forwards, ours=ours)
            async for each in self._objects(kind):
                await self._write(kind, each, change)
                if not self.back and self._progress(each):
                    await self._write(kind, each, self._without_progress, subresource="status")
        for kind, manager in () if self.back else self._children():
            async for each in self._objects(kind):
                await self._write(kind, each, partial(self._managed, manager=manager))
        print(*(f"{text} ({count})" for text, count in sorted(self.done.items())), sep="\n", end="\n" * bool(self.done))
        print(*(f"left: {text}" for text in self.left), sep="\n", end="\n" * bool(self.left))
        if not self.done and not self.left:
            print("nothing to do")
        elif self.dry_run:
            print("dry run: nothing was changed")
        return not self.left

    def _kinds(self) -> dict[Kind, tuple[str, ...]]:
        """The kinds that the operator reconciles, with its finalizers."""
        found: dict[Kind, tuple[str, ...]] = {}
        for controller in self.operator.controllers:
            for kind in controller.kinds(self.operator.group):
                found[kind] = (*found.get(kind, ()), *self.operator.finalizers(controller))
        return found

    def _children(self) -> Iterator[tuple[Kind, str]]:
        """The kinds of children that the operator applied, with the field manager of the controller."""
        for controller in self.operator.controllers:
            for owned in controller.owns:
                selector = f"{MANAGED_BY}={self.operator.name}"
                kind = Kind(owned.api_version, owned.kind, plural=owned.plural, scope=owned.scope)
                yield replace(kind, label_selector=selector), f"{self.operator.name}/{controller.__name__}"

    async def _objects(self, kind: Kind) -> AsyncIterator[Resource]:
        async for page in pages(self.client, kind):
            for item in page.items:
                yield {"apiVersion": kind.api_version, "kind": kind.kind, **item.decode()}

    async def _write(
        self, kind: Kind, resource: Resource, change: Callable[[Resource], Change], *, subresource: str = ""
    ) -> None:
        """Send the merge patch of `change`, which is called again when another client wrote the object meanwhile."""
        key = key_of(resource)
        for _ in range(TRIES):
            wanted = change(resource)
            try:
                if wanted.texts and not self.dry_run:
                    fence = {"resourceVersion": resource["metadata"]["resourceVersion"]}
                    patch = {**wanted.patch, "metadata": {**wanted.patch.get("metadata", {}), **fence}}
                    await self.client.merge_patch(kind, key, patch, subresource=subresource)
            except Conflict:
                with suppress(NotFound):
                    resource = {**resource, **await self.client.get(kind, key)}
                continue
            except NotFound:
                return
            except (Forbidden, Invalid) as refused:
                if "missing rule" in str(refused):  # RBAC refuses the other objects, too
                    raise
                self.left.append(f"{identify(resource)}: {refused}")
                return
            if wanted.problem:
                self.left.append(f"{identify(resource)} {wanted.problem}")
            self.done.update(f"{kind.kind}: {text}" for text in wanted.texts)
            return
        self.left.append(f"{identify(resource)} is changed again and again by another client: run this again")

    def _forwards(self, resource: Resource, ours: tuple[str, ...]) -> Change:
        metadata, patch, texts = resource["metadata"], dict[str, Any](), list[str]()
        present, problem = list(metadata.get("finalizers") or ()), ""
        old = [each for each in chosen(present, self.traces.finalizers) if each not in ours]
        missing = [each for each in ours if each not in present]
        if old and metadata.get("deletionTimestamp") and (missing or not ours):
            problem = (
                f"is being deleted, and waits for {', '.join(old)}: let the former operator finish it, or remove that "
                "finalizer by hand if nothing has to be cleaned up"
            )
        elif old:
            patch["finalizers"] = _replaced(present, old, missing)
            texts.append(_exchange(old, missing))
        if marks := chosen(metadata.get("annotations") or (), self.traces.annotations):
            patch["annotations"] = dict.fromkeys(marks)
            texts += [f"annotation {each} is removed" for each in marks]
        return Change({"metadata": patch}, texts, problem)

    def _backwards(self, resource: Resource, ours: tuple[str, ...]) -> Change:
        metadata = resource["metadata"]
        present = list(metadata.get("finalizers") or ())
        own = [each for each in present if each in ours and each not in self.traces.finalizers]
        # A name that ends with `/` stands for several finalizers.
        names = [each for each in self.traces.finalizers[:1] if not each.endswith("/")]
        missing = [] if chosen(present, self.traces.finalizers) else names
        if not own:
            return Change()
        if metadata.get("deletionTimestamp") and missing:
            return Change(problem=f"is being deleted, and waits for {', '.join(own)}: let this operator finish it")
        return Change({"metadata": {"finalizers": _replaced(present, own, missing)}}, [_exchange(own, missing)])

    def _progress(self, resource: Resource) -> list[str]:
        status = resource.get("status")
        return [each for each in self.traces.status if isinstance(status, dict) and each in status]

    def _without_progress(self, resource: Resource) -> Change:
        names = self._progress(resource)
        return Change({"status": dict.fromkeys(names)}, [f"status.{each} is removed" for each in names])

    def _managed(self, resource: Resource, manager: str) -> Change:
        """Give the fields of former managers to `manager`, if it applied the object."""
        entries = list(resource["metadata"].get("managedFields") or ())
        ours = next((each for each in entries if (each["manager"], each["operation"]) == (manager, "Apply")), None)
        old = [
            each
            for each in entries
            if each["manager"] in self.traces.managers and each is not ours and not each.get("subresource")
        ]
        if ours is None or not old:
            return Change()
        version = ours["apiVersion"]
        if other := [each for each in old if each["apiVersion"] != version]:
            names = ", ".join(f"{each['manager']} ({each['apiVersion']})" for each in other)
            return Change(problem=f"has fields of {names} in another version than {version}: they stay there")
        fields: Fields = ours["fieldsV1"]
        for each in old:
            fields = union(fields, each["fieldsV1"])
        kept = [{**ours, "fieldsV1": fields} if each is ours else each for each in entries if each not in old]
        names = " and ".join(dict.fromkeys(each["manager"] for each in old))
        paths = list(_paths(fields, ours["fieldsV1"]))
        freed = ", ".join(paths[:SHOWN]) + (f" and {len(paths) - SHOWN} more" if len(paths) > SHOWN else "")
        after = f"; unless the handler registers them, its next reconcile removes {freed}" if paths else ""
        return Change({"metadata": {"managedFields": kept}}, [f"fields of {names} go to {manager}{after}"])


async def take_over(cluster: Cluster, operator: Operator, traces: Traces, *, back: bool, dry_run: bool) -> bool:
    """Replace the `traces` by the names of `operator`, or with `back` its finalizers by the first one of the traces.

    Guarantees: each write names the version that it was decided on; with `dry_run` nothing changes.
    Returns: whether all objects could be changed; the others are printed.
    Raises: `UsageError` if there is nothing to look for; `ApiError`.
    """
    if not operator.controllers:
        raise UsageError("the operator has no controller yet, so nothing can be taken over: add one first")
    async with Client(cluster, user_agent="bonny-migrate-from") as client:
        return await TakeOver(client=client, operator=operator, traces=traces, back=back, dry_run=dry_run).run()


def _replaced(present: list[str], old: list[str], new: list[str]) -> list[str]:
    """`present` with `new` instead of `old`, where the first one was."""
    kept = [each for each in present if each not in old]
    with suppress(ValueError):
        place = present.index(old[0])
        kept[place:place] = new
    return kept


def _exchange(old: list[str], new: list[str]) -> str:
    text = f"finalizer {', '.join(old)}"
    return f"{text} becomes {', '.join(new)}" if new else f"{text} is removed"


def _paths(fields: Fields, less: Fields, above: str = "") -> Iterator[str]:
    """The paths of the outermost fields that `fields` has and `less` lacks."""
    for step, inner in fields.items():
        path = f"{above}.{step[2:]}" if step.startswith("f:") else f"{above}[{step[2:]}]"
        if step not in less:
            if step != ".":
                yield path
        elif inner:
            yield from _paths(inner, less[step], path)
