"""Board: the answers behind the page: from the API server, by streams of its own, and from the operator's memory."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

from bonny.client.api import Client
from bonny.core.conditions import RECONCILED
from bonny.engine.stream import Stream
from bonny.errors import ApiError, InvalidObject, UsageError
from bonny.kinds import Kind
from bonny.operator import Operator
from bonny.resource import PAUSED, RECONCILE_AT, Key, Resource, printable

from ..why.answers import answers, verdict
from ..why.facts import OperatorFacts, controller_of, facts, operator_facts
from .inside import Inside

# Of a list; a person searches for the rest.
SHOWN: Final = 200
# Rows with these outcomes come first.
FIRST: Final = ("failed", "stopped", "running", "waiting", "retry")
ACTIONS: Final = ("pause", "resume", "reconcile")


class Board:
    """The data of the page. `run` keeps the lists up to date."""

    def __init__(self, client: Client, operator: Operator, inside: Inside, *, namespace: str) -> None:
        self._client, self._operator, self._inside, self._namespace = client, operator, inside, namespace
        kinds = [kind for controller in operator.controllers for kind in controller.kinds(operator.group)]
        self._streams = {
            kind.plural: Stream(client, kind, namespace=None, options=operator.watch_options) for kind in kinds
        }

    async def run(self) -> None:
        """Follow the kinds of the operator, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for stream in self._streams.values():
                group.create_task(stream.run())

    async def overview(self) -> dict[str, Any]:
        """The kinds, and the state of the operator."""
        kinds = [
            {
                "plural": plural,
                "kind": stream.kind.kind,
                "namespaced": stream.kind.namespaced,
                "controller": self._controller(stream.kind),
                "objects": len(stream.store),
                "problem": None if stream.error is None else printable(stream.error.message),
            }
            for plural, stream in self._streams.items()
        ]
        return {"operator": self._operator.name, "kinds": kinds, "inside": await self._inside.ask("/overview")}

    async def objects(self, plural: str, *, search: str = "", outcome: str = "") -> dict[str, Any]:
        """The objects of a kind whose name has `search` in it: the first 200, and how many there are.

        An `outcome` selects those whose last run ended so. Raises: `UsageError` for another kind.
        """
        stream = self._stream(plural)
        last = await self._inside.ask("/outcomes", controller=self._controller(stream.kind))
        runs = {} if "problem" in last else last
        names = [(key, str(key)) for key in stream.store.keys() if search in str(key)]  # noqa: SIM118  not a mapping
        if outcome:
            names = [(key, name) for key, name in names if runs.get(name, {}).get("outcome", "none") == outcome]
        order = {each: place for place, each in enumerate(FIRST)}
        names.sort(key=lambda each: (order.get(runs.get(each[1], {}).get("outcome"), len(FIRST)), each[1]))
        rows = [_row(stream, key, runs.get(name)) for key, name in names[:SHOWN]]
        return {"total": len(names), "rows": rows, "problem": last.get("problem")}

    async def one(self, plural: str, namespace: str, name: str) -> dict[str, Any]:
        """One object: the ten answers, its annotations for steering, and its runs. Raises: `ApiError`, `UsageError`."""
        kind = self._stream(plural).kind
        of: OperatorFacts = await operator_facts(self._client, self._operator, self._namespace)
        found = await facts(self._client, kind, namespace, name, of=of)
        given = answers(found)
        query = {"controller": self._controller(kind), "namespace": namespace, "name": name}
        annotations = ((found.resource or {}).get("metadata") or {}).get("annotations") or {}
        return {
            "verdict": asdict(verdict(given)),
            "answers": [asdict(each) for each in given],
            "exists": found.resource is not None,
            "paused": annotations.get(PAUSED, "false") != "false",
            "inside": await self._inside.ask("/object", **query),
        }

    async def act(self, plural: str, namespace: str, name: str, action: str) -> None:
        """Pause, resume or reconcile an object, by an annotation that the person writes.

        Raises: `UsageError` for another kind or action; `ApiError` when the API server refuses it. RBAC: patch.
        """
        if action not in ACTIONS:
            raise UsageError(f"{action[:60]!r} is not an action: use {', '.join(ACTIONS)}")
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        change = {"pause": {PAUSED: "true"}, "resume": {PAUSED: None}, "reconcile": {RECONCILE_AT: now}}[action]
        await self._client.merge_patch(
            self._stream(plural).kind, Key(namespace, name), {"metadata": {"annotations": change}}
        )

    def _stream(self, plural: str) -> Stream:
        if plural not in self._streams:
            raise UsageError(f"{self._operator.name} has no kind {plural[:60]!r}: it has {', '.join(self._streams)}")
        return self._streams[plural]

    def _controller(self, kind: Kind) -> str:
        controller = controller_of(self._operator, kind.group, kind.kind)
        return controller.__name__ if controller else ""


def _row(stream: Stream, key: Key, run: dict[str, Any] | None) -> dict[str, Any]:
    item = stream.store.get(key)
    live: Resource = {}
    with suppress(InvalidObject, ApiError):
        live = item.decode() if item is not None else {}
    conditions = {each["type"]: each["status"] for each in (live.get("status") or {}).get("conditions") or ()}
    annotations = (live.get("metadata") or {}).get("annotations") or {}
    return {
        "namespace": key.namespace,
        "name": key.name,
        "ready": conditions.get("Ready", conditions.get("Available", "")),
        "reconciled": conditions.get(RECONCILED, ""),
        "deleting": "deletionTimestamp" in (live.get("metadata") or {}),
        "paused": annotations.get(PAUSED, "false") != "false",
        "outcome": (run or {}).get("outcome", "none"),
        "at": (run or {}).get("at"),
        "error": printable((run or {}).get("error", "")),
    }
