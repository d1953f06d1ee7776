"""Answers: ten questions, in the order in which people have them, answered from `facts`. No input, no output.

1. accepted: is the object stored, and has the operator seen its newest spec?
2. conditions: all of them, in full.
3. operator: does it run, does a replica lead, is it in sync?
4. turn: where is it in the queue; is anything due for it, or waited for?
5. error: the last error, and since when.
6. children: which of them is not ready, the deepest first?
7. writers: who else writes fields of the object or of its children?
8. finalizers: which are left, and who removes them?
9. runs: its last reconciles, from the memory of the operator, or else the events about them.
10. permissions: which are missing?
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from bonny.client.errors import MISSING_RULE
from bonny.core.conditions import RECONCILED
from bonny.core.fields import owned_fields
from bonny.readiness import is_ready
from bonny.resource import Resource, identify, listed, printable

from ..manifest.rbac import missing_lines
from ..uses import selector_of
from .facts import Child, Facts, OperatorFacts, flat, last_seen

# Of a list; `kubectl` shows all.
SHOWN: Final = 10
# Finalizers of Kubernetes itself, and who removes them.
COLLECTED: Final = {
    "foregroundDeletion": "the garbage collector, when the children that block it are gone",
    "orphan": "the garbage collector, when the owner references of the children are removed",
}
# Reasons of `Reconciled` that are not errors.
WAITING: Final = ("Waiting", "Retry")
NO_CONDITIONS: Final = "its status has no conditions: let its status class inherit WithConditions to see more"


class State(StrEnum):
    """How an answer is to be read."""

    GOOD = "ok"
    WAITING = "wait"
    BAD = "FAIL"
    UNKNOWN = "?"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one question."""

    question: str
    state: State
    text: str
    detail: tuple[str, ...] = ()


def answers(facts: Facts) -> list[Answer]:
    """The answers to the ten questions; only the first one, and those about the operator, without an object."""
    about_operator = [_operator(facts), _permissions(facts)]
    if facts.resource is None:
        return [_absent(facts), *about_operator]
    live = facts.resource
    return [
        _accepted(live, facts),
        _conditions(live),
        about_operator[0],
        _turn(live, facts),
        _error(live, facts),
        _children(facts),
        _writers(live, facts),
        _finalizers(live, facts),
        _runs(facts),
        about_operator[1],
    ]


def verdict(given: list[Answer]) -> Answer:
    """The answer that explains the others: the first fault, in the order of repair."""
    by_question = {each.question: each for each in given}
    order = ("accepted", "operator", "permissions", "finalizers", "writers", "error", "children", "turn", "conditions")
    for state in (State.BAD, State.WAITING):
        for question in order:
            if question in by_question and by_question[question].state is state:
                return by_question[question]
    return Answer("", State.GOOD, "nothing is wrong")


# --- the questions ---


def _absent(facts: Facts) -> Answer:
    have = f"there are {listed(facts.names)}" if facts.names else f"there are no {facts.kind.plural}"
    advice = "the API server refuses an object that does not fit the schema or a webhook, when it is applied"
    return Answer("accepted", State.BAD, f"there is no such object; {have}; {advice}")


def _accepted(live: Resource, facts: Facts) -> Answer:
    metadata = live["metadata"]
    generation, seen = metadata.get("generation"), observed_generation(live)
    if facts.controller is None:
        return Answer("accepted", State.BAD, f"no controller of {facts.of.operator.name} reconciles {facts.kind.kind}")
    if facts.outside:
        how = f", which watches namespaces with {selector}" if (selector := selector_of(facts.of.operator)) else ""
        text = f"the namespace {facts.outside} is not watched by {facts.of.operator.name}{how}"
        return Answer("accepted", State.BAD, text)
    if generation is None or seen is None:
        return Answer("accepted", State.GOOD, f"stored {_ago(metadata['creationTimestamp'], facts)}")
    if seen < generation:
        return Answer(
            "accepted", State.WAITING, f"generation {generation} is stored, the operator has handled generation {seen}"
        )
    return Answer("accepted", State.GOOD, f"generation {generation} is stored, and the operator has handled it")


def observed_generation(live: Resource) -> int | None:
    """The newest generation that the status is about; None if the status has none."""
    status = live.get("status") or {}
    conditions = status.get("conditions") or ()
    seen = [each.get("observedGeneration") for each in (status, *conditions)]
    return max((each for each in seen if isinstance(each, int)), default=None)


def _conditions(live: Resource) -> Answer:
    conditions = (live.get("status") or {}).get("conditions") or ()
    if not conditions:
        return Answer("conditions", State.UNKNOWN, NO_CONDITIONS)
    lines = []
    for each in conditions:
        why = f"{each.get('reason', '')}: {each.get('message', '')}".strip(": ")
        lines.append(f"{each['type']}={each['status']} since {each.get('lastTransitionTime', '?')}  {why}".rstrip())
    bad = [each["type"] for each in conditions if _is_bad(each)]
    if bad:
        text = f"{', '.join(bad)} {'is' if len(bad) == 1 else 'are'} not True"
        return Answer("conditions", State.WAITING, text, _safe(lines))
    return Answer("conditions", State.GOOD, f"{len(lines)}, in full:", _safe(lines))


def _is_bad(condition: Mapping[str, Any]) -> bool:
    """Of other types, either status may be the good one."""
    return condition["type"] in ("Ready", "Available", RECONCILED) and condition["status"] != "True"


def _operator(facts: Facts) -> Answer:
    known, now = facts.of, facts.now
    pods = _safe([_pod_line(pod) for pod in known.pods[:SHOWN]])
    unready = [pod for pod in known.pods if not is_ready(pod)]
    leads = known.inside.get("leading")
    if leads and (known.lease is None or not known.operator.deploy.leader_election):
        return _in_sync("it runs, and answers", pods, known)
    if not known.operator.deploy.leader_election:
        state = State.BAD if unready else State.GOOD if known.pods else State.UNKNOWN
        return Answer("operator", state, f"without leader election; {len(known.pods)} pods in {known.namespace}", pods)
    if known.lease is None:
        text = f"there is no Lease {known.namespace}/{known.operator.name}: it does not run there, or never led"
        return Answer("operator", State.BAD if unready else State.UNKNOWN, text, pods)
    spec = known.lease.get("spec") or {}
    holder = printable(str(spec.get("holderIdentity") or ""))
    renewed, lasts = _time(spec.get("renewTime")), spec.get("leaseDurationSeconds") or 0
    age = (now - renewed).total_seconds() if renewed else None
    if not holder or age is None or age > lasts:
        since = f", the last one renewed its Lease {_duration(age)} ago" if age is not None else ""
        return Answer("operator", State.BAD, f"no replica leads{since}: nothing is reconciled", pods)
    text = f"{holder} leads since {spec.get('acquireTime', '?')}, and renewed its Lease {_duration(age)} ago"
    return _in_sync(text, pods, known)


def _in_sync(text: str, pods: tuple[str, ...], known: OperatorFacts) -> Answer:
    """Add the state of its streams, where its console shows them."""
    streams = known.inside.get("streams")
    if streams is None:
        return Answer("operator", State.GOOD, text, pods)
    broken = [f"{each['name']}: {each['error']}" for each in streams if each["error"]]
    behind = [each["name"] for each in streams if not each["synced"]]
    if broken:
        return Answer("operator", State.BAD, f"{len(broken)} of its streams fail; {text}", (*_safe(broken), *pods))
    if behind:
        return Answer("operator", State.WAITING, f"it is not in sync yet with {listed(behind)}; {text}", pods)
    return Answer("operator", State.GOOD, f"{text}; all {len(streams)} streams are in sync", pods)


def _pod_line(pod: Resource) -> str:
    return f"{identify(pod)}: {'ready' if is_ready(pod) else cause_of(pod)}"


def _turn(live: Resource, facts: Facts) -> Answer:
    reconciled = _condition(live, RECONCILED)
    why = printable((reconciled or {}).get("message", ""))
    if "queue" in facts.inside:
        return _place(facts.inside["queue"], facts.inside["runs"], why)
    rest = f"the queue is in the operator's memory: {facts.inside.get('problem') or 'it was not read'}"
    if reconciled is None:
        return Answer("turn", State.UNKNOWN, f"not visible without the condition {RECONCILED}; {rest}")
    since = _ago(reconciled.get("lastTransitionTime"), facts)
    if reconciled["status"] == "True":
        return Answer("turn", State.GOOD, "nothing is due: the last reconcile succeeded")
    if reconciled["reason"] in WAITING:
        return Answer("turn", State.WAITING, f"it waits, since {since}: {why}")
    if reconciled["reason"] == "Terminal":
        return Answer("turn", State.BAD, f"it stopped {since}, until the object or a child changes: {why}")
    return Answer("turn", State.WAITING, f"it is tried again, at the latest 5 minutes after the last try; {rest}")


def _place(queue: Mapping[str, Any], runs: Sequence[Mapping[str, Any]], why: str) -> Answer:
    """Where the object is in the queue of the operator."""
    seconds = _duration(queue["seconds"] or 0.0)
    tries = f", after {queue['tries']} {'try' if queue['tries'] == 1 else 'tries'}" if queue["tries"] else ""
    timer = queue["timer_seconds"]
    later = "" if timer is None else f"; its timer ends in {_duration(timer)}"
    outcome = runs[0]["outcome"] if runs else "none"
    match queue["state"]:
        case "working":
            return Answer("turn", State.WAITING, f"its handler runs{tries}{later}")
        case "ready":
            return Answer(
                "turn", State.WAITING, f"it is ready since {seconds}, and waits for a free slot{tries}{later}"
            )
        case "parked":
            return Answer(
                "turn", State.WAITING, f"it waits for its own write to appear, at most {seconds}{tries}{later}"
            )
        case "delayed":
            return Answer("turn", State.WAITING, f"it is tried again in {seconds}{tries}{later}")
    if outcome == "stopped":
        return Answer("turn", State.BAD, f"it stopped, until the object or a child changes: {why}{later}")
    if outcome == "waiting":
        return Answer("turn", State.WAITING, f"it waits: {printable(runs[0]['error'])}{later}")
    return Answer("turn", State.GOOD, f"nothing is due{later}")


def _error(live: Resource, facts: Facts) -> Answer:
    reconciled = _condition(live, RECONCILED)
    warnings = [each for each in facts.events if each.get("type") == "Warning"]
    tries = _safe([_event_line(each, facts) for each in reversed(warnings[-SHOWN:])])
    if reconciled is not None and reconciled["status"] == "False" and reconciled["reason"] not in WAITING:
        since, message = _ago(reconciled.get("lastTransitionTime"), facts), printable(reconciled.get("message", ""))
        return Answer("error", State.BAD, f"{reconciled['reason']}, first seen {since}: {message}", tries)
    if not warnings:
        return Answer("error", State.GOOD, "none is reported")
    if reconciled is None:
        return Answer("error", State.BAD, f"reported, and maybe over since: {tries[0]}", tries[1:])
    return Answer("error", State.GOOD, f"none now; the last one was {_ago(last_seen(warnings[-1]), facts)}", tries)


def _children(facts: Facts) -> Answer:
    controller = facts.controller
    if controller is None or not controller.owns:
        name = controller.__name__ if controller else "no controller"
        return Answer("children", State.UNKNOWN, f"{name} declares no kinds in `owns`, so its children are not listed")
    everything = flat(facts.children)
    wrong = [(depth, each) for depth, each in everything if not is_ready(each)]
    lines = tuple(_tree(tree_of(facts.children)))
    if not everything:
        return Answer("children", State.GOOD, "there are none")
    if not wrong:
        return Answer("children", State.GOOD, f"ready: {len(everything)} of {len(everything)}", lines)
    _, deepest = max(wrong, key=lambda entry: entry[0])
    text = f"{len(wrong)} of {len(everything)} are not ready, the deepest is {identify(deepest)}: {cause_of(deepest)}"
    return Answer("children", State.WAITING, text, lines)


def tree_of(children: Sequence[Child], depth: int = 0) -> list[Mapping[str, Any]]:
    """All of a tree, parents first; of siblings, the one above the deepest child that is not ready is the first."""
    rows: list[Mapping[str, Any]] = []
    for each in sorted(children, key=_deepest, reverse=True):
        ready = is_ready(each.resource)
        cause = "" if ready else printable(cause_of(each.resource))
        rows.append({"depth": depth, "name": printable(identify(each.resource)), "ready": ready, "cause": cause})
        rows += tree_of(each.children, depth + 1)
    return rows


def _deepest(child: Child) -> int:
    """The depth of the deepest descendant that is not ready, counted from the child; 0: all are ready."""
    below = max(map(_deepest, child.children), default=0)
    return below + 1 if below else int(not is_ready(child.resource))


def _tree(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """All that is not ready, and as many others as fit."""
    left = SHOWN
    for each in rows:
        left -= each["ready"]
        if not each["ready"] or left >= 0:
            yield f"{'  ' * each['depth']}{each['name']}: {each['cause'] or 'ready'}"
    if left < 0:
        yield f"and {-left} more that are ready"


def cause_of(resource: Resource) -> str:
    """Why an object is not ready, in the words of its status."""
    metadata, status = resource["metadata"], resource.get("status") or {}
    if metadata.get("deletionTimestamp"):
        left = listed(metadata.get("finalizers") or ["its pods' grace period"])
        return f"is being deleted since {metadata['deletionTimestamp']}, which waits for {left}"
    containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    for each in containers:
        for how in ("waiting", "terminated"):
            state = (each.get("state") or {}).get(how) or {}
            if state.get("reason") not in (None, "Completed", "PodInitializing"):
                last = ((each.get("lastState") or {}).get("terminated") or {}).get("reason")
                ended = f", it ended before with {last}" if last else ""
                why = f": {state['message']}" if state.get("message") else ""
                return f"container {each['name']} is {how}, {state['reason']}{why}{ended}"
    for each in status.get("conditions") or ():
        if each["status"] != "True" and each["type"] in ("Ready", "Available", "PodScheduled", "Complete", RECONCILED):
            words = f"{each.get('reason', '')}: {each.get('message', '')}".strip(": ")
            return f"{each['type']} is {each['status']}{f', {words}' if words else ''}"
    for each in status.get("conditions") or ():
        if each["status"] == "True" and each["type"] in ("Failed", "ReplicaFailure"):
            return f"{each['type']}, {each.get('reason', '')}: {each.get('message', '')}".strip(": ")
    if "phase" in status:
        return f"its phase is {status['phase']}"
    return "its status has no reason" if status else "it has no status yet: its controller has not handled it"


def _writers(live: Resource, facts: Facts) -> Answer:
    operator = facts.of.operator
    ours = {f"{operator.name}/{facts.controller.__name__}"} if facts.controller else set()
    lines = [
        f"{_entry(each, facts)}" for each in live["metadata"].get("managedFields") or () if each["manager"] not in ours
    ]
    rivals = [
        f"{identify(child)}: {line}"
        for _, child in flat(facts.children)
        for manager in ours
        if (own := owned_fields(child, manager)) is not None
        for line in _rivals(child, own, manager, facts)
    ]
    drift = [_event_line(each, facts) for each in facts.events if each.get("reason") == "RepeatedDrift"]
    if drift and not rivals:
        return Answer("writers", State.BAD, "another writer undoes the fields of this operator", _safe(drift[-SHOWN:]))
    if rivals:
        text = f"{len(rivals)} other field managers write fields of children that this operator sets, too"
        return Answer("writers", State.BAD, text, _safe([*rivals[:SHOWN], *lines[:SHOWN]]))
    text = "no other field manager writes the fields of this operator"
    return Answer("writers", State.GOOD, f"{text}; others write:" if lines else text, _safe(lines[:SHOWN]))


def _rivals(child: Resource, own: Mapping[str, Any], manager: str, facts: Facts) -> Iterator[str]:
    for entry in child["metadata"].get("managedFields") or ():
        if entry["manager"] != manager and not entry.get("subresource"):
            shared = {*paths(own)} & {*paths(entry.get("fieldsV1") or {})}
            if shared:
                yield f"{_entry({**entry, 'fieldsV1': {}}, facts)} {listed(sorted(shared))}".strip()


def _entry(entry: Resource, facts: Facts) -> str:
    subresource = f" of {entry['subresource']}" if entry.get("subresource") else ""
    fields = listed(sorted(paths(entry.get("fieldsV1") or {})))
    how = f"{entry.get('operation', '?')}{subresource}, {_ago(entry.get('time'), facts)}"
    return f"{entry['manager']} ({how}): {fields}".rstrip()


def paths(fields: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """The paths of fieldsV1, as `spec.ports[].port`; list items without their keys, which quote the object."""
    for name, below in fields.items():
        if name == ".":
            continue
        path = f"{above}.{name[2:]}".lstrip(".") if name.startswith("f:") else f"{above}[]"
        inside = {each: sub for each, sub in below.items() if each != "."}
        if inside:
            yield from paths(inside, path)
        else:
            yield path


def _finalizers(live: Resource, facts: Facts) -> Answer:
    metadata = live["metadata"]
    names, since = metadata.get("finalizers") or [], metadata.get("deletionTimestamp")
    own = facts.of.operator.finalizers(facts.controller) if facts.controller else ()
    lines = _safe([f"{name}: {_remover(name, live, own)}" for name in names])
    if since:
        text = f"the object is being deleted since {since}, which waits for {len(names)}"
        return Answer("finalizers", State.WAITING if set(names) <= {*own, *COLLECTED} else State.BAD, text, lines)
    return Answer(
        "finalizers", State.GOOD, f"{len(names)}, and the object is not being deleted" if names else "none", lines
    )


def _remover(name: str, live: Resource, own: tuple[str, ...]) -> str:
    if name in own:
        return "this operator removes it when `finalize` returned"
    if name in COLLECTED:
        return f"removed by {COLLECTED[name]}"
    for entry in live["metadata"].get("managedFields") or ():
        fields = ((entry.get("fieldsV1") or {}).get("f:metadata") or {}).get("f:finalizers") or {}
        if f'v:"{name}"' in fields:
            return f"not of this operator; {entry['manager']} set it, and has to remove it"
    return "not of this operator; its writer has to remove it"


def _runs(facts: Facts) -> Answer:
    runs = facts.inside.get("runs")
    if runs:
        lines = _safe([_run_line(each, facts) for each in runs])
        return Answer("runs", State.GOOD, f"{len(runs)}, the newest first", lines)
    lines = _safe([_event_line(each, facts) for each in reversed(facts.events[-SHOWN:])])
    note = "these are events, which the API server keeps for an hour"
    if runs is not None:
        note = "the operator remembers no run of it since it started"
    if not lines:
        return Answer("runs", State.UNKNOWN, f"none; {note}")
    return Answer("runs", State.GOOD, f"{len(facts.events)} reported, the newest first; {note}", lines)


def _run_line(run: Mapping[str, Any], facts: Facts) -> str:
    ago = _duration(facts.now.timestamp() - run["at"])
    tries = f", try {run['tries'] + 1}" if run["tries"] else ""
    why = f": {run['error']}" if run["error"] else ""
    wrote = f"; wrote {listed(run['writes'])}" if run["writes"] else "; wrote nothing"
    reasons = ", ".join(run["reasons"])
    return f"{ago} ago: {run['action']} ({reasons}){tries}, {run['outcome']} after {run['seconds']:.3f} s{why}{wrote}"


def _event_line(event: Resource, facts: Facts) -> str:
    count = (event.get("series") or {}).get("count") or event.get("deprecatedCount") or 1
    times = f" ({count} times)" if count > 1 else ""
    note, action = event.get("note", ""), event.get("action", "")
    who = event.get("reportingController", "")
    return f"{_ago(last_seen(event), facts)} {event.get('reason', '')}/{action}{times}, {who}: {note}"


def _permissions(facts: Facts) -> Answer:
    conditions = ((facts.resource or {}).get("status") or {}).get("conditions") or ()
    refusals = dict.fromkeys(
        rules
        for each in conditions
        if each["status"] != "True" and (rules := each.get("message", "").partition(MISSING_RULE)[2])
    )
    lacking = missing_lines(facts.of.missing)
    if refusals or lacking:
        account = f"{facts.of.namespace}/{facts.of.operator.name}"
        lack = len(facts.of.missing) or len(refusals)
        text = f"ServiceAccount {account} lacks {lack}: apply the manifest of `invoke manifest`"
        return Answer("permissions", State.BAD, text, _safe([*refusals, *lacking]))
    unread = _safe([*facts.of.unread, *facts.unread])
    if unread:
        return Answer("permissions", State.UNKNOWN, "none is visible, and you may not read:", unread)
    return Answer("permissions", State.GOOD, "none is missing")


# --- words ---


def _condition(live: Resource, type_: str) -> Resource | None:
    found: Iterator[Resource] = (
        each for each in (live.get("status") or {}).get("conditions") or () if each["type"] == type_
    )
    return next(found, None)


def _time(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text)).astimezone(UTC)
    except ValueError:
        return None


def _ago(text: object, facts: Facts) -> str:
    moment = _time(text)
    return f"{_duration((facts.now - moment).total_seconds())} ago" if moment else "at an unknown time"


def _duration(seconds: float) -> str:
    """`12 s`, `5 min`, `3 h`, `9 d`; clocks differ, so never below 0."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def _safe(lines: list[str]) -> tuple[str, ...]:
    return tuple(map(printable, lines))
