"""The status of a simulated pod: a function of the pod, the time and the behaviour."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bonny.resource import Resource
from bonny_dev.workloads import pods
from bonny_dev.workloads.behaviours import Behaviour, parse
from bonny_dev.workloads.pods import Step

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def pod(**spec: Any) -> Resource:
    metadata = {"name": "web-0", "namespace": "default", "uid": "f00d"}
    return {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": "app:1"}], **spec}, "status": {}}


def after(seconds: float, resource: Resource, behaviour: str = "", *, crashed: int = 0) -> Step:
    """What a kubelet writes `seconds` after noon; the pod has that status afterwards, as the API server stores it."""
    asked: Behaviour | None = parse(behaviour) if behaviour else None
    now = NOW + timedelta(seconds=seconds)
    step = pods.on_node(resource, asked, now=now, address="10.244.0.2", crashed=crashed)
    resource["status"] = resource["status"] | step.status
    return step


def condition(step: Step, type_: str) -> str:
    return next(str(each["status"]) for each in step.status["conditions"] if each["type"] == type_)


def state(step: Step) -> Resource:
    (container,) = step.status["containerStatuses"]
    return dict(container["state"])


def test_a_pod_runs_and_is_ready_at_once_and_then_nothing_is_written() -> None:
    made = pod()

    step = after(0.4, made)

    assert (step.status["phase"], condition(step, "Ready"), step.again) == ("Running", "True", None)
    assert (step.status["startTime"], step.status["podIP"]) == ("2026-03-01T12:00:00Z", "10.244.0.2")
    assert not pods.differs(made, after(3600.0, made).status)


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_a_pod_that_is_not_always_restarted_completes_after_a_second(policy: str) -> None:
    made = pod(restartPolicy=policy)

    running = after(0.0, made)
    assert (running.status["phase"], running.again) == ("Running", 1.0)
    ended = after(1.0, made)

    assert ended.status["phase"] == "Succeeded"
    assert state(ended)["terminated"]["exitCode"] == 0


def test_not_ready_lasts_at_least_its_seconds() -> None:
    made = pod()

    first = after(0.9, made, "not-ready=20")
    assert (first.status["phase"], condition(first, "Ready")) == ("Running", "False")
    # The status has whole seconds: the pod may have started at 12:00:00.999.
    assert condition(after(20.9, made, "not-ready=20"), "Ready") == "False"
    last = after(21.0, made, "not-ready=20")

    assert condition(last, "Ready") == "True"
    since = {each["type"]: each["lastTransitionTime"] for each in last.status["conditions"]}
    assert (since["Ready"], since["Initialized"]) == ("2026-03-01T12:00:21Z", "2026-03-01T12:00:00Z")


def test_an_image_that_cannot_be_pulled_keeps_the_pod_pending() -> None:
    made = pod()

    step = after(0.0, made, "image-pull-error")

    assert (step.status["phase"], state(step)["waiting"]["reason"]) == ("Pending", "ImagePullBackOff")
    assert after(0.0, made).status["phase"] == "Running"  # nobody asks for it any more


def test_a_crash_loop_doubles_its_waits_and_ends_at_its_limit() -> None:
    made = pod()
    waits, seconds = [], 0.0

    for _ in range(3):
        step = after(seconds, made, "crash=3")
        assert state(step)["waiting"]["reason"] == "CrashLoopBackOff"
        assert step.again is not None
        waits.append(step.again)
        assert not pods.differs(made, after(seconds + step.again / 2, made, "crash=3").status)
        seconds += step.again
    running = after(seconds, made, "crash=3")

    assert waits == [1.0, 2.0, 4.0]
    (container,) = running.status["containerStatuses"]
    assert (container["ready"], container["restartCount"]) == (True, 3)
    assert container["lastState"]["terminated"]["exitCode"] == 1


def test_a_crash_loop_waits_thirty_seconds_at_most() -> None:
    made = pod()
    seconds = 0.0
    for _ in range(20):
        step = after(seconds, made, "crash")
        seconds += step.again or 0.0

    assert step.again == 30.0
    assert step.status["containerStatuses"][0]["restartCount"] == 20


@pytest.mark.parametrize(("crashed", "phase"), [(0, "Failed"), (1, "Failed"), (2, "Running")])
def test_pods_of_a_job_fail_until_enough_of_them_did(crashed: int, phase: str) -> None:
    assert after(0.0, pod(restartPolicy="Never"), "crash=2", crashed=crashed).status["phase"] == phase


def test_a_job_that_hangs_completes_only_after_its_limit() -> None:
    made = pod(restartPolicy="Never")

    assert after(0.0, made, "hang=60").status["phase"] == "Running"
    assert after(60.5, made, "hang=60").status["phase"] == "Running"
    assert after(61.0, made, "hang=60").status["phase"] == "Succeeded"


def test_an_eviction_is_a_failure_with_its_reason_and_may_come_later() -> None:
    later = pod()
    first = after(0.0, later, "evict=5")

    assert (first.status["phase"], condition(first, "Ready"), first.again) == ("Running", "True", 6.0)
    for evicted in (after(6.0, later, "evict=5"), after(0.0, pod(), "evict")):
        assert (evicted.status["phase"], evicted.status["reason"]) == ("Failed", "Evicted")


def test_a_readiness_gate_that_is_not_met_keeps_the_pod_unready_and_stays_as_it_is() -> None:
    made = pod(readinessGates=[{"conditionType": "example.com/ok"}])
    made["status"]["conditions"] = [{"type": "example.com/ok", "status": "False", "reason": "Mine"}]

    step = after(0.0, made)
    assert (condition(step, "ContainersReady"), condition(step, "Ready")) == ("True", "False")
    assert made["status"]["conditions"][-1] == {"type": "example.com/ok", "status": "False", "reason": "Mine"}

    made["status"]["conditions"][-1]["status"] = "True"
    assert condition(after(1.0, made), "Ready") == "True"


def test_init_containers_have_ended_and_sidecars_run() -> None:
    init = [{"name": "copy", "image": "a"}, {"name": "proxy", "image": "b", "restartPolicy": "Always"}]

    copy, proxy = after(0.0, pod(initContainers=init)).status["initContainerStatuses"]

    assert copy["state"]["terminated"]["exitCode"] == 0
    assert "running" in proxy["state"]


def test_a_pod_of_the_host_network_has_the_address_of_the_node() -> None:
    status = after(0.0, pod(hostNetwork=True)).status

    assert status["podIP"] == status["hostIP"]


def test_a_pod_without_a_node_says_why_and_since_when() -> None:
    made = pod()
    made["status"] = pods.unschedulable(made, "no node fits", now=NOW)

    again = pods.unschedulable(made, "no node fits", now=NOW + timedelta(hours=1))

    assert not pods.differs(made, again)
    assert again["conditions"] == [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "no node fits",
            "lastTransitionTime": "2026-03-01T12:00:00Z",
        }
    ]


def test_a_status_differs_only_in_what_is_wanted() -> None:
    live = {"status": {"phase": "Running", "qosClass": "BestEffort", "conditions": [{"type": "B"}, {"type": "A"}]}}

    assert not pods.differs(live, {"phase": "Running", "conditions": [{"type": "A"}, {"type": "B"}], "reason": ""})
    assert pods.differs(live, {"phase": "Running", "conditions": [{"type": "A"}]})
    assert pods.differs(live, {"phase": "Failed"})
