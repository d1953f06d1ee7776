"""Pods: what a kubelet would write to the status of a pod, without running anything.

Each function takes the pod as the API server stores it and the time, and returns a status. The times in the status are
the only memory, so the process that calls this may be restarted. They have whole seconds, so a limit of N seconds takes
N to N + 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from bonny.resource import Resource

from .behaviours import Behaviour, Simulate
from .node_choice import HOST_ADDRESS

# A pod that completes, as a Job's does, runs so long.
RUN_SECONDS: Final = 1.0
# A kubelet waits ten times as long between restarts: 10 s, doubling to 5 min.
FIRST_BACKOFF: Final = 1.0
LONGEST_BACKOFF: Final = 30.0
SOON: Final = 0.05
FINAL: Final = ("Succeeded", "Failed")
# Conditions that a kubelet keeps; readiness gates and others belong to their writers.
KEPT: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


class Step(NamedTuple):
    """The status that a pod should have, and the seconds after which it should have another one: None for never."""

    status: Resource
    again: float | None = None


def is_final(pod: Mapping[str, Any]) -> bool:
    """Whether the pod has ended."""
    return pod.get("status", {}).get("phase") in FINAL


def completes(pod: Mapping[str, Any]) -> bool:
    """Whether the containers end by themselves, as in a Job or any pod that is not always restarted."""
    return bool(pod["spec"].get("restartPolicy", "Always") != "Always")


def on_node(pod: Mapping[str, Any], behaviour: Behaviour | None, *, now: datetime, address: str, crashed: int) -> Step:
    """The status of a pod that has a node.

    `address` is its IP address if it has none yet; `crashed` is how many pods of the same Job crashed before.
    """
    status = pod.get("status", {})
    began = parse_time(status["startTime"]) if "startTime" in status else now
    seconds = (now - began).total_seconds()
    base = {
        "startTime": format_time(began),
        "hostIP": HOST_ADDRESS,
        "hostIPs": [{"ip": HOST_ADDRESS}],
        "podIP": status.get("podIP") or (HOST_ADDRESS if pod["spec"].get("hostNetwork") else address),
    }
    base["podIPs"] = [{"ip": base["podIP"]}]
    step = _behaving(pod, behaviour, seconds=seconds, now=now, crashed=crashed)
    return Step(base | step.status, step.again)


def unschedulable(pod: Mapping[str, Any], message: str, *, now: datetime) -> Resource:
    """The status of a pod that gets no node."""
    return {"phase": "Pending", "conditions": _conditions(pod, {"PodScheduled": message}, "Unschedulable", now=now)}


def refused(pod: Mapping[str, Any], message: str, *, now: datetime) -> Resource:
    """The status of a pod with a node whose annotation asks for something that cannot be simulated."""
    return _waiting(pod, "NotSimulated", message, now=now)


def killed(pod: Mapping[str, Any], *, now: datetime) -> Resource:
    """The status of a pod that was deleted while it ran, and whose finalizers keep the object."""
    return _ended(pod, "Failed", now=now, code=137, why="Error").status


def _behaving(
    pod: Mapping[str, Any], behaviour: Behaviour | None, *, seconds: float, now: datetime, crashed: int
) -> Step:
    """Phase, conditions and containers `seconds` after the start."""
    if behaviour is None:
        return _working(pod, now=now)
    # The start is rounded down: so long it surely is.
    seconds -= 1.0
    over = behaviour.is_over(seconds)
    left = None if behaviour.limit is None else max(behaviour.limit - seconds, SOON)
    match behaviour.simulate:
        case Simulate.CRASH:
            return _crashing(pod, behaviour.limit, now=now, crashed=crashed)
        case Simulate.EVICT if over or behaviour.limit is None:
            return _evicted(pod, now=now)
        case Simulate.EVICT:
            step = _working(pod, now=now)
            return Step(step.status, min(each for each in (step.again, left) if each is not None))
        case Simulate.NOT_READY if not over:
            return Step(_running(pod, now=now, unready="not-ready is simulated"), left)
        case Simulate.IMAGE_PULL_ERROR if not over:
            return Step(_waiting(pod, "ImagePullBackOff", "image-pull-error is simulated", now=now), left)
        case Simulate.HANG if not over:
            return Step(_running(pod, now=now), left)
        case _:
            return _working(pod, now=now)


def _working(pod: Mapping[str, Any], *, now: datetime) -> Step:
    """Run, and complete where that is expected."""
    running = _running(pod, now=now)
    if not completes(pod):
        return Step(running)
    begun = [parse_time(each["state"]["running"]["startedAt"]) for each in running["containerStatuses"]]
    left = RUN_SECONDS - (now - max(begun)).total_seconds()
    return Step(running, left) if left > 0 else _ended(pod, "Succeeded", now=now, code=0, why="Completed")


def _crashing(pod: Mapping[str, Any], times: int | None, *, now: datetime, crashed: int) -> Step:
    """Exit with code 1, so many times."""
    if pod["spec"].get("restartPolicy") == "Never":
        if times is not None and crashed >= times:
            return _working(pod, now=now)
        return _ended(pod, "Failed", now=now, code=1, why="Error")
    first = (pod.get("status", {}).get("containerStatuses") or [{}])[0]
    count = first.get("restartCount", 0)
    ended = first.get("lastState", {}).get("terminated", {}).get("finishedAt")
    due = _backoff(count) - (now - parse_time(ended)).total_seconds() if ended else 0.0
    if times is not None and count >= times and due <= 0:
        return _working(pod, now=now)
    if due <= 0:
        count, ended = count + 1, format_time(now)
        due = _backoff(count)
    terminated = {"terminated": {"exitCode": 1, "reason": "Error", "startedAt": ended, "finishedAt": ended}}
    status = _waiting(pod, "CrashLoopBackOff", "crash is simulated", now=now)
    status["phase"] = "Running"
    for each in status["containerStatuses"]:
        each |= {"restartCount": count, "lastState": terminated}
    return Step(status, due)


def _backoff(crashes: int) -> float:
    """Seconds from a crash to the next start."""
    return float(min(FIRST_BACKOFF * 2 ** min(crashes - 1, 10), LONGEST_BACKOFF))


def _evicted(pod: Mapping[str, Any], *, now: datetime) -> Step:
    step = _ended(pod, "Failed", now=now, code=137, why="Error")
    return Step({**step.status, "reason": "Evicted", "message": "evict is simulated"})


def _running(pod: Mapping[str, Any], *, now: datetime, unready: str = "") -> Resource:
    """Running, and Ready unless `unready` says why not, or a readiness gate is not met."""
    containers = [
        {
            **each,
            "ready": not unready,
            "started": True,
            "state": {"running": {"startedAt": _started_at(pod, each, now)}},
        }
        for each in _containers(pod, "containers")
    ]
    live = {each["type"]: each["status"] for each in pod.get("status", {}).get("conditions", ())}
    gates = [gate["conditionType"] for gate in pod["spec"].get("readinessGates", ())]
    unmet = [gate for gate in gates if live.get(gate) != "True"]
    missing = {"ContainersReady": unready, "Ready": unready} if unready else {}
    if unmet and not unready:
        missing = {"Ready": f"readiness gates are not met: {', '.join(unmet)}"}
    return {
        "phase": "Running",
        "conditions": _conditions(pod, missing, "ContainersNotReady" if unready else "ReadinessGatesNotReady", now=now),
        "containerStatuses": containers,
        **_initialized(pod, now),
    }


def _waiting(pod: Mapping[str, Any], reason: str, message: str, *, now: datetime) -> Resource:
    """No container runs, for this reason."""
    state = {"waiting": {"reason": reason, "message": message}}
    containers = [{**each, "ready": False, "started": False, "state": state} for each in _containers(pod, "containers")]
    missing = dict.fromkeys(("Ready", "ContainersReady"), message)
    return {
        "phase": "Pending",
        "conditions": _conditions(pod, missing, "ContainersNotReady", now=now),
        "containerStatuses": containers,
        **_initialized(pod, now),
    }


def _ended(pod: Mapping[str, Any], phase: str, *, now: datetime, code: int, why: str) -> Step:
    """All containers have ended with this exit code."""
    containers = []
    for each in _containers(pod, "containers"):
        times = {"startedAt": _started_at(pod, each, now), "finishedAt": format_time(now)}
        terminated = {"exitCode": code, "reason": why, **times}
        containers.append({**each, "ready": False, "started": False, "state": {"terminated": terminated}})
    missing = dict.fromkeys(("Ready", "ContainersReady"), "the containers have ended")
    reason = "PodCompleted" if phase == "Succeeded" else "PodFailed"
    return Step({
        "phase": phase,
        "conditions": _conditions(pod, missing, reason, now=now),
        "containerStatuses": containers,
        **_initialized(pod, now),
    })  # fmt: skip


def _containers(pod: Mapping[str, Any], field: str) -> list[Resource]:
    """The statuses of the containers in `field` of the spec, without state."""
    live = {each["name"]: each for each in pod.get("status", {}).get(_statuses(field), ())}
    return [
        {
            "name": each["name"],
            "image": each.get("image", ""),
            "imageID": "",
            "containerID": f"sandbox://{pod['metadata'].get('uid', '')}/{each['name']}",
            "restartCount": live.get(each["name"], {}).get("restartCount", 0),
            "lastState": live.get(each["name"], {}).get("lastState", {}),
        }
        for each in pod["spec"].get(field) or ()
    ]


def _initialized(pod: Mapping[str, Any], now: datetime) -> Resource:
    """The statuses of the init containers: they have ended, or go on as sidecars."""
    statuses = []
    sidecars = {each["name"] for each in pod["spec"].get("initContainers") or () if each.get("restartPolicy")}
    for each in _containers(pod, "initContainers"):
        at, state = _started_at(pod, each, now, "initContainers"), dict[str, Any]()
        if each["name"] in sidecars:
            state = {"running": {"startedAt": at}}
        else:
            state = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": at, "finishedAt": at}}
        statuses.append({**each, "ready": True, "started": each["name"] in sidecars, "state": state})
    return {"initContainerStatuses": statuses} if statuses else {}


def _started_at(pod: Mapping[str, Any], container: Resource, now: datetime, field: str = "containers") -> str:
    """When the container began to run: as the status says, else now."""
    for each in pod.get("status", {}).get(_statuses(field), ()):
        if each["name"] == container["name"]:
            state = each.get("state", {})
            times = state.get("running") or state.get("terminated") or {}
            return str(times.get("startedAt") or format_time(now))
    return format_time(now)


def _statuses(field: str) -> str:
    return "containerStatuses" if field == "containers" else "initContainerStatuses"


def _conditions(
    pod: Mapping[str, Any], missing: Mapping[str, str], reason: str, *, now: datetime
) -> Sequence[Resource]:
    """All conditions: those in `missing` are False, with `reason` and their message; times of unchanged ones stay."""
    live = {each["type"]: each for each in pod.get("status", {}).get("conditions", ())}
    scheduled = "PodScheduled" not in missing
    made: list[Resource] = [each for name, each in live.items() if name not in KEPT]
    for name in KEPT if scheduled else ("PodScheduled",):
        status = "False" if name in missing else "True"
        old = live.get(name, {})
        since = old["lastTransitionTime"] if old.get("status") == status else format_time(now)
        condition = {"type": name, "status": status, "lastTransitionTime": since}
        made.append(condition | ({"reason": reason, "message": missing[name]} if name in missing else {}))
    return sorted(made, key=lambda each: str(each["type"]))


def differs(pod: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
    """Whether the live status has other values than `status` in some field that `status` has."""
    return not _holds(pod.get("status", {}), status)


def _holds(live: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        return isinstance(live, Mapping) and all(_holds(live.get(name), each) for name, each in wanted.items())
    if isinstance(wanted, list):
        if wanted and isinstance(wanted[0], Mapping) and "type" in wanted[0]:
            live = sorted(live or (), key=lambda each: str(each["type"]))
        return isinstance(live, list) and len(live) == len(wanted) and all(map(_holds, live, wanted))
    # The server leaves out empty texts and numbers that are zero.
    return bool(live == wanted or (not live and not wanted))


def parse_time(text: str) -> datetime:
    """A time of the API."""
    return datetime.fromisoformat(text)


def format_time(time: datetime) -> str:
    """As the API server writes times: whole seconds."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
