"""Finalizer: keeps an object until everything that Kubernetes does not know of is cleaned up.

    Finalizer()                                                    the controller's own `finalize`
    Finalizer("example.com/bucket", implementation=remove_bucket, when=has_bucket)

The finalizer is added before the handler runs, so before anything is created for the object. When the object is being
deleted, confirmed by an uncached read, the implementation is called; the finalizer is removed only after it returned.
The process may crash between the two, so an implementation is called at least once and may be called again.

Children that this controller applied without an owner reference, which the garbage collector ignores, are deleted then,
too; children of another controller are left to its own finalizer. If its children were
registered to come after others, they are deleted first, level by level in the reverse order, each level when the last
object of the one before is gone; the lowest level is left to the garbage collector. Meanwhile the implementation is
called again each time. `kubectl delete --cascade=orphan` keeps all children; `--cascade=foreground` keeps no order.

Both changes are JSON patches that test the UID and the list of finalizers that they were decided on, so a re-created
object or another writer's finalizer is never touched. If admission undoes one, that is a `Retry`, and no handler runs.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from ..client.errors import Conflict, Invalid, NotFound
from ..controller import Controller
from ..core.objects import Item, Meta
from ..core.records import Action
from ..engine.reconcile import Reconcile, Step
from ..errors import OptionError, Retry, Wait
from ..naming import check_finalizer
from ..pipeline import call_handler
from ..resource import APPLY_ORDER, Resource, identify, listed
from .child import delete_children, is_applied_by
from .live import TRIES, read_owner, report_fight

# The finalizer of `--cascade=orphan`, until the garbage collector has removed the owner references of the children.
ORPHANED: Final = "orphan"


class Finalizer:
    """Usage: `Finalizer()` before `DelegateToController`; several with names of their own, or in `Controller.steps`.

    `implementation` gets the axn, as `async def` or `def`, within the controller's `timeout`; it may raise `Retry` or
    `Wait`.
    `when` gets the axn and returns whether the object needs the finalizer; default: always. A finalizer that was added
    stays when `when` later returns False, as its cleanup may be owed; read an `IMMUTABLE` field to prevent that.
    Raises: `OptionError`, `UsageError` for an invalid finalizer name.
    RBAC: get and patch on the kind, and delete on the kinds in `owns`.
    """

    def __init__(
        self,
        name: str = "",
        *,
        implementation: Callable[[Reconcile[Any]], Any] | None = None,
        when: Callable[[Reconcile[Any]], bool] | None = None,
    ) -> None:
        if bool(name) != (implementation is not None):
            raise OptionError("Finalizer: give both name and implementation, or neither for Controller.finalize")
        self._name = check_finalizer(name) if name else ""
        self._implementation = implementation
        self._when = when

    def name_for(self, controller: type[Controller[Any]], own: str) -> str | None:
        """The finalizer that this step keeps on the objects of `controller`, if any; `own` is that of `finalize`."""
        return self._name or (own if controller.finalizes() else None)

    async def __call__(self, axn: Reconcile[Any]) -> None:
        """Raises: the errors of the implementation; `HandlerTimeout`; `ApiError`; `Conflict` after three tries;
        `Retry` if another writer, or admission, undoes the change."""
        controller = axn.controller
        name = self.name_for(type(controller), axn.context.finalizer)
        if name is None or axn.action is Action.DELETE:
            return
        if axn.action is Action.FINALIZE:
            if _is_on(axn, name) and await _is_still_on(axn, name):
                implementation = self._implementation or controller.finalize
                await call_handler(implementation, axn, seconds=controller.timeout, name=f"the finalizer {name}")
                await _delete_children(axn)
                await _patch(axn, name, wanted=False)
                _must_stick(axn, name, wanted=False)
        elif not _is_on(axn, name) and (self._when is None or self._when(axn)):
            _ = axn.spec  # an object that does not fit the schema gets no finalizer
            subject, fights = (axn.uid, name), axn.context.fights
            wait = fights.wait(subject, now=time.monotonic())
            if wait:
                raise Retry(f"another writer removes the finalizer {name} each time it is added", after=wait)
            await _patch(axn, name, wanted=True)
            if fights.corrected(subject, now=time.monotonic()):
                report_fight(axn, f"another writer removes the finalizer {name} each time it is added")
            _must_stick(axn, name, wanted=True)


def finalizers_of(
    controller: type[Controller[Any]], steps: Iterable[Step], *, operator: str, group: str
) -> tuple[str, ...]:
    """The finalizers that these steps, and the controller's own, keep on its objects in that operator."""
    own = controller.finalizer_of(operator=operator, group=group)
    named = [step.name_for(controller, own) for step in (*steps, *controller.steps) if isinstance(step, Finalizer)]
    return tuple(name for name in named if name is not None)


def _is_on(axn: Reconcile[Any], name: str) -> bool:
    return name in axn.shown.meta.finalizers


def _must_stick(axn: Reconcile[Any], name: str, *, wanted: bool) -> None:
    """Admission may change the stored object, and the answer is a success all the same. Raises: `Retry`."""
    if not axn.halted and _is_on(axn, name) != wanted:
        done, undoes = ("added", "removes it") if wanted else ("removed", "adds it again")
        raise Retry(f"the finalizer {name} was {done}, but an admission webhook or policy of the cluster {undoes}")


async def _is_still_on(axn: Reconcile[Any], name: str) -> bool:
    """Ask the API server before anything is cleaned up: the stream may be outdated, and the implementation would remove
    the resources of a new object of the same name."""
    fresh = await read_owner(axn)
    if fresh is None:
        axn.halt()
        return False
    axn.renew(fresh)
    return _is_on(axn, name)


async def _patch(axn: Reconcile[Any], name: str, *, wanted: bool) -> None:
    """Add or remove the finalizer; halts if the object is gone or was re-created."""
    context, kind = axn.context, axn.kind
    for tries_left in reversed(range(TRIES)):
        try:
            with context.writing(kind, axn.key) as wrote:
                stored = await context.client.json_patch(
                    kind, axn.key, _operations(axn.shown.meta, name, wanted=wanted)
                )
                wrote(stored["metadata"]["resourceVersion"])
            break
        except NotFound:
            axn.halt()
            return
        except (Conflict, Invalid):
            if not tries_left:
                raise
        fresh = await read_owner(axn)
        # Under deletion no finalizer can be added, and nothing must be created; the watch will report the deletion.
        if fresh is None or (wanted and fresh["metadata"].get("deletionTimestamp")):
            axn.halt()
            return
        axn.renew(fresh)
        if _is_on(axn, name) == wanted:
            return
    axn.renew(stored)
    if not wanted and not stored["metadata"].get("finalizers"):
        # That was the last finalizer: the object is gone, and so is its status.
        with context.deleting(kind, axn.key, axn.uid):
            axn.halt()


def _operations(meta: Meta, name: str, *, wanted: bool) -> list[Resource]:
    others = [other for other in meta.finalizers if other != name]
    return [
        {"op": "test", "path": "/metadata/uid", "value": meta.uid},
        # A missing list tests as null.
        {"op": "test", "path": "/metadata/finalizers", "value": list(meta.finalizers) or None},
        {"op": "add", "path": "/metadata/finalizers", "value": [*others, name] if wanted else others},
    ]


async def _delete_children(axn: Reconcile[Any]) -> None:
    """Delete the children that this controller applied: the higher levels first, and then each without an owner
    reference. The owner is under deletion, so they are not wanted again.

    Raises: `Wait` until a level is gone.
    """
    uid = axn.uid
    if ORPHANED in axn.shown.meta.finalizers:
        return
    children = axn.context.children(uid)
    if children is None:
        raise Retry(f"the children of {identify(axn.identity)} are unknown: a stream is not in sync")
    ours = [(kind, child) for kind, child in children if is_applied_by(child, axn.context.manager)]
    highest = max((_level(child) for _, child in ours), default=0)
    late = [(kind, child) for kind, child in ours if _level(child) == highest]
    if len(late) < len(ours):
        await delete_children(axn, late, insist=True)
        axn.outdated = axn.context.wrote  # our own deletion does not wake the owner
        raise Wait(f"waiting for the deletion of {listed([f'{kind.kind} {child.key}' for kind, child in late])}")
    # The garbage collector sees only owner references.
    unseen = [each for each in ours if all(owner.uid != uid for owner in each[1].meta.owner_references)]
    await delete_children(axn, unseen, insist=True)


def _level(child: Item) -> int:
    """The level at which it was applied."""
    with contextlib.suppress(ValueError):
        return int((child.meta.annotations or {}).get(APPLY_ORDER, 0))
    return 0  # another client wrote something else there
