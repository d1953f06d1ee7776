"""ApplyStatus: writes the status that the handler registered, by server-side apply to the status subresource.

The registered changes are applied to the fields of the live status that this controller itself set, so two controllers,
or add and reconcile, do not erase each other's conditions. Nothing is sent when nothing changes. The write carries the
UID and the resourceVersion that it was decided on. After a conflict the object is read again and the changes are
applied again, unless the status already reports a newer generation. A deleted object is a warning, not an error.

If the schema has conditions, the runtime adds its own, `Reconciled`: whether the last reconcile succeeded, and if not,
why. A reconcile that failed or waits cannot claim `Ready` or `Available`: they keep their previous state, or become
False.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import Any, Final

import msgspec

from ..client.clock import timestamp
from ..client.errors import Conflict, Invalid, NotFound
from ..core.conditions import RECONCILED, ReconcileFailure, condition, with_condition
from ..core.fields import merged, same, unowned
from ..core.objects import decode_item
from ..core.records import Action
from ..engine.reconcile import Reconcile
from ..errors import ApiError
from ..pipeline import failure_of
from ..resource import RECONCILE_AT, Resource
from .live import TRIES, owned_part, read_owner

# A handler claims these before its descendants are applied.
SUMMARIES: Final = ("Ready", "Available")
# Of the annotation that requests a reconcile; a time has 20 characters.
LONGEST_REQUEST: Final = 64

log = logging.getLogger("bonny.steps.apply_status")


class ApplyStatus:
    """Usage: `ApplyStatus()`, as the last step. `strict=True` makes a vanished object an error.

    RBAC: patch on `<plural>/status`, and get on the kind.
    """

    reports_failure = True
    runs_while_waiting = True

    def __init__(self, *, strict: bool = False) -> None:
        self._strict = strict

    async def __call__(self, axn: Reconcile[Any]) -> None:
        """Raises: `ApiError`; `Conflict` after three tries."""
        if axn.action is Action.DELETE:
            return
        if not axn.changes_status:
            axn.mark_sent("status")
            return
        # When it was written already, applying the changes again would count a counter twice.
        change = axn.with_own_conditions if axn.is_sent("status") else axn.before_apply_status
        try:
            await write_status(axn, lambda base: _with_own_parts(change(base), axn), strict=self._strict)
        except Exception as error:
            # The status does not fit the schema, or the handler's own function failed: each try would fail alike.
            if isinstance(error, Invalid) or not isinstance(error, ApiError):
                axn.failure = axn.failure or failure_of(error)
                await _report_alone(axn)
            raise


async def write_status(axn: Reconcile[Any], change: Callable[[Resource], Resource], *, strict: bool) -> None:
    """Write the status that `change` makes of the status that this controller wrote before.

    Raises: `ApiError`; `Conflict` after three tries; `NotFound` if `strict`.
    """
    live = await _basis(axn)
    for tries_left in reversed(range(TRIES)):
        if live is None:
            break
        try:
            axn.stored = await _write(axn, live, change)
            break
        except NotFound:
            if strict:
                raise
            log.warning("object is gone, status not written", extra={"object": str(axn.key)})
            break
        except Conflict:
            if not tries_left:
                raise
        live = await read_owner(axn)
    axn.mark_sent("status")


async def _report_alone(axn: Reconcile[Any]) -> None:
    """Write only the runtime's own condition: the status that the handler registered cannot be written."""
    if axn.has_conditions:
        with contextlib.suppress(ApiError):
            await write_status(axn, lambda base: _with_own_parts(axn.with_own_conditions(base), axn), strict=False)


def _with_own_parts(status: Resource, axn: Reconcile[Any]) -> Resource:
    """`status` with the runtime's own condition and the observed generation."""
    why, generation = axn.unfinished, axn.shown.meta.generation
    if axn.has_conditions:
        asked = (axn.shown.meta.annotations or {}).get(RECONCILE_AT, "")[:LONGEST_REQUEST]
        done = f"handled {RECONCILE_AT}={asked}" if asked else ""
        reason, message = ("Succeeded", done) if why is None else (why.reason, why.message)
        reconciled = condition(RECONCILED, why is None, reason=reason, message=message, generation=generation)
        status = with_condition(status, reconciled, at=timestamp())
    if axn.has_observed_generation and why is None and generation:
        status = {**status, "observedGeneration": generation}
    return status


def _withdrawn(wanted: Resource, base: Resource, why: ReconcileFailure) -> Resource:
    """`wanted` without the summary conditions that an unfinished reconcile claimed too early."""
    previous = {each.get("type"): each for each in base.get("conditions", ())}
    conditions = [
        previous.get(claimed["type"]) or {**claimed, "status": "False", "reason": why.reason, "message": why.message}
        if claimed.get("type") in SUMMARIES and claimed.get("status") == "True"
        else claimed
        for claimed in wanted.get("conditions", ())
    ]
    return {**wanted, "conditions": conditions} if conditions else wanted


async def _write(axn: Reconcile[Any], live: Resource, change: Callable[[Resource], Resource]) -> Resource:
    """Send the status unless it is already there; returns the object afterwards."""
    context = axn.context
    base, current = await _own_status(live, context.manager, api_version=axn.kind.api_version)
    if _is_overtaken(base, by=live, of=axn):
        return live
    wanted = change(base)
    if axn.unfinished is not None:
        wanted = _withdrawn(wanted, base, axn.unfinished)
    if same(wanted, base) and current:
        return live
    metadata = live["metadata"]
    named = {name: metadata[name] for name in ("name", "namespace", "uid", "resourceVersion") if name in metadata}
    body = {"apiVersion": axn.kind.api_version, "kind": axn.kind.kind, "metadata": named, "status": wanted}
    with context.writing(axn.kind, axn.key) as wrote:
        stored, _ = await context.client.apply(axn.kind, body, manager=context.manager, subresource="status")
        version = stored["metadata"]["resourceVersion"]
        # With the same version as before nothing was written, and the event belongs to another writer.
        if version != named.get("resourceVersion"):
            wrote(version)
    if axn.controller.on_status and axn.shown.meta.resource_version == named.get("resourceVersion"):
        # The only difference is this reconcile's own write, so it is not a change. After a conflict there may be more.
        axn.shown = decode_item(msgspec.json.encode(stored))
    return stored


async def _own_status(live: Resource, manager: str, *, api_version: str) -> tuple[Resource, bool]:
    """The fields of the live status that `manager` set, and whether it did so in this version of the kind.

    If not, they may have other names in this one: what has no owner is its own, too. The API server would remove it if
    it were left out. It is written once more without a change: `invoke migrate` can only drop such names.
    """
    own: Resource = (await owned_part(live, manager, subresource="status"))[1].get("status", {})
    entries = [each for each in live["metadata"].get("managedFields") or () if each.get("subresource") == "status"]
    ours = [each for each in entries if (each.get("manager"), each.get("operation")) == (manager, "Apply")]
    if all(each.get("apiVersion") == api_version for each in ours):
        return own, True
    named = [(each.get("fieldsV1") or {}).get("f:status", {}) for each in entries]
    return merged(own, unowned(live.get("status") or {}, named)), False


def _is_overtaken(status: Resource, *, by: Resource, of: Reconcile[Any]) -> bool:
    """Whether the status already reports a newer generation than the reconciled one."""
    newest: int = max(each.get("observedGeneration", 0) for each in (status, *status.get("conditions", ())))
    current: int = by["metadata"].get("generation", 0)
    # A generation newer than the object's own was restored from a backup and means nothing.
    return newest <= current and newest > of.shown.meta.generation


async def _basis(axn: Reconcile[Any]) -> Resource | None:
    """The object whose status is changed; None if nothing changes it."""
    if axn.stored is not None:
        return axn.stored
    if not axn.kind.metadata_only:
        # Not `axn.resource`: the handler may have changed that.
        return axn.shown.decode()
    return await read_owner(axn) if axn.status else None
