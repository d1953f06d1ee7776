"""Board: the answers behind the page: from the API server, by streams of its own, and from the operator's memory."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from heapq import nsmallest
from typing import Any, Final

from bonny.client.api import Client
from bonny.core.conditions import RECONCILED
from bonny.engine.stream import Stream
from bonny.errors import ApiError, InvalidObject, UsageError
from bonny.kinds import Kind
from bonny.operator import Operator
from bonny.resource import MANAGED_BY, PAUSED, RECONCILE_AT, Key, Resource, printable

from ..inside.reading import Inside, object_query, with_ages
from ..manifest.rbac import as_rules, missing_lines
from ..manifest.recorder import PermissionRecorder, rule_lines
from ..why.answers import answers, tree_of, verdict
from ..why.facts import OperatorFacts, controller_of, facts, operator_facts
from .changes import Changes
from .memory import NONE, Last, Memory

# Streams of one kind that are shown one by one.
STREAMS: Final = 5
# Of a list; a person searches for the rest.
SHOWN: Final = 200
# Rows with these outcomes come first.
FIRST: Final = ("failed", "stopped", "running", "retry", "waiting")
ACTIONS: Final = ("pause", "resume", "reconcile")
# The operator's Lease, pods and permissions change seldom, and take a request for each permission.
FACTS_SECONDS: Final = 10.0
# A change is seen moments after its write began, by another clock.
CLOCKS: Final = 0.5


class Board:
    """The data of the page. `run` keeps the lists up to date."""

    def __init__(self, client: Client, operator: Operator, inside: Inside, *, namespace: str) -> None:
        self._client, self._operator, self._inside, self._namespace = client, operator, inside, namespace
        self._memory, self._changes = Memory(inside), Changes(operator.name)
        self._known: tuple[float, OperatorFacts] | None = None
        kinds = [kind for controller in operator.controllers for kind in controller.kinds(operator.group)]
        self._streams = {kind.plural: self._stream_of(kind) for kind in kinds}
        children = dict.fromkeys(kind for controller in operator.controllers for kind in controller.owns)
        self._children = [self._stream_of(_ours(kind, operator.name)) for kind in children]

    async def run(self) -> None:
        """Follow the kinds of the operator, and their children, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for stream in (*self._streams.values(), *self._children):
                stream.subscribe(self._changes)
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
        inside = await self._inside.ask("/overview")
        if "problem" not in inside:
            await self._memory.look()
            inside = shown(inside, self._memory)
        return {"operator": self._operator.name, "kinds": kinds, "inside": inside}

    async def objects(self, plural: str, *, search: str = "", outcome: str = "") -> dict[str, Any]:
        """The objects of a kind whose name has `search` in it: the first 200, and how many there are.

        An `outcome` selects those whose last run ended so. Raises: `UsageError` for another kind.
        """
        stream = self._stream(plural)
        await self._memory.look()
        runs = self._memory.of(self._controller(stream.kind), stream.kind.resource)
        order = {each: place for place, each in enumerate(FIRST)}
        names = [
            (order.get(last, len(FIRST)), name, key)
            for key in stream.store.keys()  # noqa: SIM118  not a mapping
            if search in (name := str(key))
            if (last := runs.get(name, NONE).outcome) == outcome or not outcome
        ]
        first = nsmallest(SHOWN, names)
        rows = [_row(stream, key, runs.get(name, NONE)) for _, name, key in first]
        return {"total": len(names), "rows": rows, "problem": self._memory.problem, "synced": stream.synced}

    async def one(self, plural: str, namespace: str, name: str) -> dict[str, Any]:
        """One object: the ten answers, its annotations for steering, and its runs. Raises: `ApiError`, `UsageError`."""
        kind = self._stream(plural).kind
        of, overview, inside = await asyncio.gather(
            self._operator_facts(),
            self._inside.ask("/overview"),
            self._inside.ask("/object", **object_query(self._operator, kind, namespace, name)),
        )
        of = replace(of, inside=with_ages(overview))
        found = await facts(self._client, kind, namespace, name, of=of, inside=inside)
        given = answers(found)
        annotations = ((found.resource or {}).get("metadata") or {}).get("annotations") or {}
        if "problem" not in inside:
            await self._memory.look()
            inside = {**inside, "runs": self._with_fields(inside["runs"])}
        return {
            "verdict": asdict(verdict(given)),
            "answers": [asdict(each) for each in given],
            "tree": tree_of(found.children),
            "exists": found.resource is not None,
            "paused": annotations.get(PAUSED, "false") != "false",
            "inside": inside,
        }

    async def permissions(self) -> dict[str, Any]:
        """The rules that the operator used, that its manifest grants without need, and that are missing."""
        of, inside = await asyncio.gather(self._operator_facts(), self._inside.ask("/overview"))
        recorder = PermissionRecorder()
        requests = inside.get("requests", ())
        for method, path, watch, status in requests:
            recorder.saw(method, path, {"watch": "true"} if watch else {}, status)
        compared = recorder.compared_with_manifest(self._operator, namespace=self._namespace)
        used = as_rules({each._replace(names=()) for each in recorder.used})
        refused = sorted(f"{method} {path}" for method, path, _, status in requests if status == "403")
        return {
            "problem": inside.get("problem"),
            "used": [*rule_lines(used)],
            "unused": [*rule_lines(compared.unused)] if requests else [],
            "missing": [*missing_lines(of.missing), *rule_lines(compared.missing)],
            "refused": refused,
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

    def _stream_of(self, kind: Kind) -> Stream:
        return Stream(self._client, kind, namespace=None, options=self._operator.watch_options)

    def _stream(self, plural: str) -> Stream:
        if plural not in self._streams:
            raise UsageError(f"{self._operator.name} has no kind {plural[:60]!r}: it has {', '.join(self._streams)}")
        return self._streams[plural]

    def _controller(self, kind: Kind) -> str:
        controller = controller_of(self._operator, kind.group, kind.kind)
        return controller.__name__ if controller else ""

    async def _operator_facts(self) -> OperatorFacts:
        if self._known is None or time.monotonic() - self._known[0] > FACTS_SECONDS:
            found = await operator_facts(self._client, self._operator, self._namespace)
            self._known = time.monotonic(), found
        return self._known[1]

    def _with_fields(self, runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The runs, newest first, by the clock of this machine, and which fields each of their writes changed.

        `fields` is None for a write that was sent before the page followed the objects.
        """
        left: dict[str, list[tuple[float, list[str]]]] = {}
        told = []
        for run in runs:
            at, writes = run["at"] - self._memory.ahead, []
            for text in run["writes"]:
                method, path, status = text.split(" ", 2)
                seen = left.setdefault(path, self._changes.of(path))
                fields: list[str] | None = [] if at > self._changes.since else None
                while seen and seen[-1][0] > at - CLOCKS:
                    fields = [*dict.fromkeys([*seen.pop()[1], *(fields or ())])]
                writes.append({"method": method, "path": path, "status": status, "fields": fields})
            told.append({**run, "at": at, "writes": writes})
        return told


def shown(inside: Mapping[str, Any], memory: Memory) -> dict[str, Any]:
    """The overview of an operator, with ages in place of its clock, and a summary of its controllers' objects."""
    controllers = [{**each, **memory.summary(each["name"], each["kind"])} for each in inside["controllers"]]
    rest = {name: value for name, value in with_ages(inside).items() if name not in ("requests", "clock")}
    return {**rest, "controllers": controllers, "streams": by_kind(rest["streams"])}


def by_kind(streams: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The streams; of a kind with more than `STREAMS` one for all of its namespaces, and the first that are not in
    sync."""
    kinds: dict[str, list[dict[str, Any]]] = {}
    for each in streams:
        kinds.setdefault(each["name"].partition(" in ")[0], []).append(each)
    found: list[dict[str, Any]] = []
    for name, of in kinds.items():
        late = [each for each in of if each["error"] or not each["synced"]]
        found += of if len(of) <= STREAMS else [_together(name, of), *late[:STREAMS]]
    return found


def _together(name: str, of: list[dict[str, Any]]) -> dict[str, Any]:
    failing, opened = [each for each in of if each["error"]], [each["opened"] for each in of]
    return {
        "name": f"{name} in {len(of)} namespaces",
        "objects": sum(each["objects"] for each in of),
        "synced": all(each["synced"] for each in of),
        "silent": max(each["silent"] for each in of),
        "opened": None if None in opened else min(opened),
        "errors": dict(sum((Counter(each["errors"]) for each in of), Counter[str]())),
        "error": f"{len(failing)} of {len(of)} fail" if failing else None,
        "failing": max((each["failing"] for each in failing), default=None),
    }


def _ours(kind: Kind, operator: str) -> Kind:
    """As the operator selects its children; of Secrets only the metadata."""
    selectors: Iterable[str] = filter(None, (kind.label_selector, f"{MANAGED_BY}={operator}"))
    secret = kind.gvk == ("v1", "Secret")
    return replace(kind, label_selector=",".join(selectors), metadata_only=kind.metadata_only or secret)


def _row(stream: Stream, key: Key, run: Last) -> dict[str, Any]:
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
        "outcome": run.outcome,
        "at": run.at or None,
        "due": run.due,
        "error": printable(run.error),
    }
