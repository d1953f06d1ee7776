"""Checks: what must be so when the faults are over; each compares plain values and gives one line of the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bonny.readiness import is_ready
from bonny.resource import Resource

from .collector import owner_uids
from .process import Census
from .traffic import WINDOW_SECONDS, Traffic
from .world import Wanted

__all__ = [
    "Check",
    "alive",
    "children",
    "deletions",
    "late_children",
    "log_lines",
    "memory",
    "requests",
    "resources",
    "rest",
    "statuses",
]

# Memory that was used at the worst moment does not all go back to the system.
MOST_GROWTH: Final = 0.10
# What Python itself has allocated does, but for caches and what is under way.
MOST_BLOCKS: Final = 0.05
# A probe of the soak's own may just be open.
MOST_MORE_FILES: Final = 4
# Two streams and one worker: whatever is left over from a fault is one more, and would be more after each.
MOST_MORE_TASKS: Final = 1
MOST_MORE_THREADS: Final = 1
# What is remembered of each object there is, and a little for what is just under way; keys also stand in void places of
# the queue's waiting line, which are cleared now and then, and what was told in events is remembered for six minutes.
MOST_MORE_OBJECTS: Final = 20
NOT_COUNTED: Final = frozenset({"Key", "Series"})
# All objects are due again within 6 s of each minute. If everything is refused just then, the growing waits allow each
# about five tries in that time, with two requests each: 1.7 requests a second for each object. The rest is for changes.
MOST_A_SECOND_EACH: Final = 2.0
MOST_A_SECOND: Final = 500
# A stream waits 0.8 s and more after each trouble, and then asks for up to five pages; an object waits 0.2 s, 0.4 s ...
MOST_A_WINDOW: Final = 50
# A silent watch hides an owner's end for 20 s, and the collector comes every 10 s; faults in a row may double that.
MOST_LATE_CHILDREN: Final = 5
# The longest that was seen is 70 s, with several faults in a row on the stream of the owners.
LATEST_CHILD_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report; it passes without `problems`."""

    name: str
    figures: str
    problems: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.problems


def statuses(wanted: Mapping[str, Wanted], widgets: Iterable[Resource]) -> Check:
    """Every object exists with its latest spec, and its status says that this was handled."""
    by_name = {widget["metadata"]["name"]: widget for widget in widgets}
    problems = [f"{name} exists and should not" for name in by_name.keys() - wanted.keys()]
    for name, want in wanted.items():
        if name not in by_name:
            problems.append(f"{name} does not exist")
            continue
        problems += [f"{name}: {problem}" for problem in _status_problems(want, by_name[name])]
    return Check("every status tells of the latest spec", f"{len(wanted):,} objects", tuple(problems))


def _status_problems(want: Wanted, widget: Resource) -> Iterable[str]:
    metadata, status = widget["metadata"], widget.get("status", {})
    if metadata["uid"] != want.uid or widget["spec"]["size"] != want.size:
        yield f"the world is wrong: {metadata['uid']} {widget['spec']}, not {want}"
    if status.get("observedGeneration") != metadata["generation"]:
        yield f"observedGeneration {status.get('observedGeneration')} of generation {metadata['generation']}"
    conditions = {condition["type"]: condition for condition in status.get("conditions", ())}
    if not is_ready(widget) or conditions["Ready"]["message"] != f"size {want.size}":
        yield f"Ready is {conditions.get('Ready')}, of size {want.size}"
    if conditions.get("Reconciled", {}).get("status") != "True":
        yield f"Reconciled is {conditions.get('Reconciled')}"


def children(wanted: Mapping[str, Wanted], found: Iterable[Resource]) -> Check:
    """Every object has its child, with the right content and owner; no child is left of an owner that is gone."""
    by_name = {child["metadata"]["name"]: child for child in found if owner_uids(child)}
    problems = [f"child {name} is left of {owner_uids(child)}" for name, child in by_name.items() if name not in wanted]
    for name, want in wanted.items():
        child = by_name.get(name)
        if child is None:
            problems.append(f"child {name} does not exist")
        elif owner_uids(child) != [want.uid]:
            problems.append(f"child {name} belongs to {owner_uids(child)}, not to {want.uid}")
        elif child.get("data") != {"size": str(want.size)}:
            problems.append(f"child {name} holds {child.get('data')}, not {want.size}")
        elif child["metadata"].get("labels", {}).get("app.kubernetes.io/managed-by") != "soak":
            problems.append(f"child {name} lacks its label")
    return Check("every child is there and right, none is orphaned", f"{len(by_name):,} children", tuple(problems))


def deletions(
    gone: Collection[str], seen: Collection[str], deleted: Mapping[str, int], *, excused: Collection[str] = ()
) -> Check:
    """`delete` ran once for each UID in `gone` that the handler had seen, at most once for the others, never else.

    `excused` are those that nobody could notice.
    """
    problems = [f"{uid} exists, and delete ran" for uid in deleted if uid not in gone]
    problems += [f"delete of {uid} ran {times} times" for uid, times in deleted.items() if times > 1]
    owed = [uid for uid in gone if uid in seen and uid not in excused]
    problems += [f"delete of {uid} did not run" for uid in owed if uid not in deleted]
    unseen = sum(1 for uid in gone if uid not in seen)
    figures = f"{len(gone):,} deleted, {unseen} of them before they were ever handled"
    if excused:
        missed = sum(1 for uid in excused if uid not in deleted)
        figures += f", {missed} that a killed operator did not notice"
    return Check("delete ran once for each deleted object", figures, tuple(problems))


def late_children(late: Mapping[str, Sequence[float]]) -> Check:
    """A child is made for an owner that is gone only until the operator knows, and not again and again.

    `late` are the seconds after the owner's end, by its UID.
    """
    problems = [
        f"{len(several)} children of {uid} were created after its end, the last one {max(several):.0f} s after it"
        for uid, several in late.items()
        if len(several) > MOST_LATE_CHILDREN or max(several) > LATEST_CHILD_SECONDS
    ]
    most = max((len(several) for several in late.values()), default=0)
    latest = max((max(several) for several in late.values()), default=0.0)
    made = sum(len(several) for several in late.values())
    figures = f"{made} made before its end was known, at most {most} for one, the latest {latest:.0f} s after it"
    return Check("no child is made again and again for an owner that is gone", figures, tuple(problems))


def rest(*, seconds: float, through_proxy: int, at_server: int, handled: int) -> Check:
    """Nothing is written when there is nothing to do."""
    problems = []
    if through_proxy or at_server:
        problems.append(f"{through_proxy} writes through the proxy, {at_server} by the metrics of the API server")
    figures = f"{through_proxy + at_server} writes in {seconds:.0f} s, {handled:,} handlings"
    return Check("at rest nothing is written", figures, tuple(problems))


def memory(before: Census, after: Census) -> Check:
    """As much as after the first list, with as many objects."""
    growth, blocks = after.resident / before.resident - 1, after.blocks / before.blocks - 1
    figures = (
        f"{before.resident:.1f} MB after the first list, {after.resident:.1f} MB at the end ({growth:+.1%}); "
        f"of that held by Python's allocator: {blocks:+.1%}"
    )
    problems = []
    if growth > MOST_GROWTH:
        problems.append(f"grown by more than {MOST_GROWTH:.0%}")
    if blocks > MOST_BLOCKS:
        problems.append(f"{after.blocks - before.blocks:,} blocks of memory more are held")
    return Check("memory is given back", figures, tuple(problems))


def resources(before: Census, after: Census) -> Check:
    """No file descriptor, thread or task is left over, and nothing that the runtime remembered of what is gone."""
    held = {
        "files": (before.files, after.files, MOST_MORE_FILES),
        "threads": (Counter(all=before.threads), Counter(all=after.threads), MOST_MORE_THREADS),
        "tasks": (before.tasks, after.tasks, MOST_MORE_TASKS),
        "objects of the runtime": (_counted(before.objects), _counted(after.objects), MOST_MORE_OBJECTS),
    }
    problems = [
        f"{what}: {_more(was, now)}" for what, (was, now, most) in held.items() if now.total() > was.total() + most
    ]
    figures = ", ".join(f"{was.total():,} {what}, then {now.total():,}" for what, (was, now, _) in held.items())
    return Check("nothing is left over", figures, tuple(problems))


def _counted(objects: Counter[str]) -> Counter[str]:
    return Counter({name: many for name, many in objects.items() if name not in NOT_COUNTED})


def _more(before: Counter[str], after: Counter[str]) -> str:
    return ", ".join(f"{many} more of {what}" for what, many in (after - before).items())


def requests(traffic: Traffic, *, objects: int) -> Check:
    """Bounded as a whole, and for each single thing that is asked for."""
    most = int(MOST_A_SECOND + MOST_A_SECOND_EACH * objects)
    many, what = traffic.hottest
    problems = []
    if traffic.peak > most:
        problems.append(f"{traffic.peak} requests in one second")
    if many > MOST_A_WINDOW:
        problems.append(f"{many} times {what} in {WINDOW_SECONDS} s")
    figures = (
        f"{traffic.total:,} in all; at most {traffic.peak} in a second (bound {most}), "
        f"at most {many} for one thing in {WINDOW_SECONDS} s (bound {MOST_A_WINDOW})"
    )
    return Check("requests are bounded", figures, tuple(problems))


def alive(*, red: int, probes: int, ready: str, stop_code: int, stop_seconds: float) -> Check:
    """Its liveness probe was never red, its readiness probe is green in the end, and SIGTERM ended it.

    `ready` is what the readiness probe says when it is red.
    """
    problems = [f"/readyz is red: {ready}"] if ready else []
    if red:
        problems.append(f"/healthz was red {red} times")
    if stop_code:
        problems.append(f"SIGTERM ended it with code {stop_code}")
    figures = f"/healthz green {probes - red} of {probes} times; ended by SIGTERM in {stop_seconds:.1f} s"
    return Check("it lived until it was told to end", figures, tuple(problems))


def log_lines(messages: Mapping[str, int], complaints: Sequence[str]) -> Check:
    """No error, no traceback, no "please report": trouble of others is a warning."""
    figures = f"{sum(messages.values()):,} lines, {messages.get('reconcile failed', 0):,} failed handlings made good"
    return Check("nothing in the log is a fault of its own", figures, tuple(complaints))
