"""Rows A: what the API server may answer, refuse or leave out (docs/reliability.md)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bonny.resource import Resource
from bonny_dev.crd.definition import crds
from bonny_dev.manifest.bundle import documents
from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import Drop, Effect, Fault, ProxiedRequest, Respond, is_any, is_write
from tests.conftest import Start
from tests.faults.scene import (
    FORBIDDEN,
    GROUP,
    HTML,
    LONG_WATCH_SECONDS,
    SEEN_SECONDS,
    SLOW,
    WIDGETS,
    Predicate,
    Scene,
    behind_a_proxy,
    of_config_maps,
    of_widgets,
    refused,
    widget,
)
from tests.support.handwritten import operator
from tests.support.load import create, patch
from tests.support.processes import handwritten

NAMESPACED = "/apis/example.com/v1/namespaces/default/widgets"
# The longest wait of a stream after trouble (bonny.core.watch), and time for what comes after it.
RECOVERY_SECONDS = 30.0 + 10.0
THROTTLED = b"Too many requests, please try again later."


# --- A1: throttled ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on", "retry_after"),
    [
        pytest.param(is_write, "1", id="writes-1"),
        pytest.param(is_write, None, id="writes", marks=SLOW),
        pytest.param(is_write, "2", id="writes-2", marks=SLOW),
        pytest.param(of_widgets, "2", id="stream-2", marks=SLOW),
    ],
)
def test_a1_throttled_requests_wait_as_long_as_retry_after(
    scene: Scene, on: Predicate, retry_after: str | None
) -> None:
    scene.ready()
    began = time.monotonic()
    fault = scene.proxy.add(Fault(Respond(429, THROTTLED, retry_after=retry_after), on=on, times=3))
    scene.proxy.cut_all()
    scene.apply("w", size=1)

    scene.until("w", 1)

    assert fault.hits == 3
    asked = [request for request in list(scene.proxy.requests) if request.time >= began and on(request)]
    refusals = [number for number, request in enumerate(asked) if request.status == 429]
    assert len(refusals) == 3
    waits = [asked[number + 1].time - asked[number].time for number in refusals]
    assert min(waits) >= float(retry_after or 1)


# API priority and fairness lets one request at a time pass, and refuses all others at once.
JAIL: Resource = {
    "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
    "kind": "PriorityLevelConfiguration",
    "metadata": {"name": "jail"},
    "spec": {
        "type": "Limited",
        "limited": {
            "nominalConcurrencyShares": 0,
            "lendablePercent": 0,
            "borrowingLimitPercent": 0,
            "limitResponse": {"type": "Reject"},
        },
    },
}
JAILED: Resource = {
    "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
    "kind": "FlowSchema",
    "metadata": {"name": "jailed"},
    "spec": {
        "priorityLevelConfiguration": {"name": "jail"},
        "matchingPrecedence": 2,
        "rules": [
            {
                "subjects": [
                    {"kind": "ServiceAccount", "serviceAccount": {"namespace": operator.name, "name": operator.name}}
                ],
                "resourceRules": [
                    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
                ],
            }
        ],
    },
}


@pytest.fixture
def jailed(sandbox: Sandbox) -> Iterator[str]:
    """The token of the operator's ServiceAccount, with the rights of its manifest, one request at a time."""
    sandbox.apply(documents(operator, image=None, namespace=operator.name, local=True))
    token = sandbox.service_account_token(operator.name, operator.name)
    sandbox.apply([JAIL, JAILED])
    try:
        sandbox.eventually(lambda: 429 in statuses_of_parallel_requests(sandbox, token), within_seconds=SEEN_SECONDS)
        yield token
    finally:
        for known in (JAILED, JAIL):
            sandbox.delete(known["apiVersion"], known["kind"], known["metadata"]["name"])


def statuses_of_parallel_requests(sandbox: Sandbox, token: str) -> set[int]:
    with ThreadPoolExecutor(16) as pool:
        return set(pool.map(lambda _: sandbox.request("GET", WIDGETS, token=token).status, range(16)))


@pytest.mark.parametrize("objects", [30, pytest.param(300, marks=SLOW)])
def test_a1_an_operator_that_may_ask_one_thing_at_a_time_gets_everything_done(
    sandbox: Sandbox, start_operator: Start, jailed: str, clean: None, objects: int
) -> None:
    """The real thing: a jail of API priority and fairness, from the first list on."""
    names = [f"w{number}" for number in range(objects)]
    create(sandbox, NAMESPACED, [widget(name) for name in names])
    with behind_a_proxy(sandbox, start_operator, token=jailed) as scene:
        began = time.monotonic()
        scene.begin(watch_seconds=LONG_WATCH_SECONDS)
        for name in names:
            sandbox.eventually(
                lambda name=name: scene.status(name)["observedGeneration"] == 1, within_seconds=30 + objects
            )
            assert scene.published(name) == "1"
        seconds = time.monotonic() - began

        asked = [request for request in list(scene.proxy.requests) if request.time < began + seconds]
        refusals = [request for request in asked if request.status == 429]
        print(f"{objects} objects in {seconds:.1f} s: {len(asked)} requests, {len(refusals)} of them refused")
        assert len(refusals) >= 4, "it was really jailed"
        assert shortest_wait(asked) >= 1.0
        # Ten workers and four streams ask anew each second; one handling is a look, a child and a status.
        assert len(refusals) <= 14 * (seconds + 1)
        assert len(asked) - len(refusals) <= 5 * objects + 20


def shortest_wait(asked: Sequence[ProxiedRequest]) -> float:
    """The shortest time between a refusal and the next time that the same was asked for."""
    refused_at: dict[tuple[str, str], float] = {}
    waits = [float("inf")]
    for request in asked:
        what = (request.method, request.path)
        if what in refused_at:
            waits.append(request.time - refused_at.pop(what))
        if request.status == 429:
            refused_at[what] = request.time
    return min(waits)


# --- A2: broken -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "effect",
    [
        pytest.param(refused(500, "InternalError", "etcdserver: request timed out"), id="500-etcd"),
        pytest.param(Respond(502, HTML, "text/html"), id="502-html", marks=SLOW),
        pytest.param(Respond(503), id="503-empty", marks=SLOW),
        pytest.param(Respond(504, b"etcdserver: request timed out"), id="504-text", marks=SLOW),
        pytest.param(Respond(200, HTML, "text/html"), id="200-html", marks=SLOW),
        pytest.param(Respond(200, b'{"kind":"WidgetList","items":['), id="200-half", marks=SLOW),
        pytest.param(Respond(302, b"moved"), id="302", marks=SLOW),
        pytest.param(Drop(), id="reset", marks=SLOW),
    ],
)
def test_a2_a_server_that_fails_at_the_start_and_later_is_waited_for(scene: Scene, effect: Effect) -> None:
    fault = scene.proxy.add(Fault(effect, times=6))
    scene.apply("early", size=1)
    scene.begin()
    scene.until("early", 1)
    assert fault.hits == 6

    again = scene.proxy.add(Fault(effect, times=4))
    scene.proxy.cut_all()
    began = time.monotonic()
    scene.apply("late", size=2)

    scene.until("late", 2)
    assert again.hits == 4
    assert scene.proxy.count(is_any, since=began) < 60, "no busy loop"


def test_a2_probes_distinguish_a_dead_server_from_a_dead_operator(scene: Scene) -> None:
    dead = scene.proxy.add(Fault(Drop(), times=None))
    scene.begin()
    scene.sandbox.eventually(lambda: scene.operator.probe("/readyz")[0] == 503)
    scene.sandbox.eventually(lambda: "unreachable" in scene.operator.probe("/readyz")[1])
    assert scene.operator.probe("/healthz")[0] == 200
    scene.proxy.remove(dead)
    scene.operator.wait_ready(within_seconds=SEEN_SECONDS)


@SLOW
def test_a2_a_server_that_refuses_connections_for_a_minute_is_waited_for(start_operator: Start) -> None:
    with Sandbox() as own:
        own.apply(crds(operator.crds, GROUP))
        at_work = start_operator(handwritten(), kubeconfig=own.kubeconfig, BONNY_LOG_LEVEL="debug").wait_ready()
        own.apply(widget("w"))
        own.eventually(lambda: own.get("v1", "ConfigMap", "w"))
        own.apiserver.kill()
        ends = time.monotonic() + 60.0

        def over() -> bool:
            # Not an OSError, which would mean "not yet": a red probe ends the row.
            if at_work.probe("/healthz")[0] != 200:
                raise RuntimeError(at_work.probe("/healthz")[1])
            return time.monotonic() > ends

        own.eventually(over, within_seconds=90)
        attempts = [line["stream"] for line in at_work.lines("watch failed")]
        status, told = at_work.probe("/readyz")
        assert (status, "unreachable" in told) == (503, True)
        # Waits of 0.8 s up to a bound that doubles: about eight in a minute. Without the doubling there would be 75.
        assert attempts
        assert max(attempts.count(stream) for stream in attempts) <= 20
        own.apiserver.start()
        own.apply(widget("w", size=2))

        own.eventually(
            lambda: (own.get("v1", "ConfigMap", "w") or {})["data"] == {"size": "2"}, within_seconds=RECOVERY_SECONDS
        )


@SLOW
def test_a2_an_etcd_that_hangs_is_waited_for(start_operator: Start) -> None:
    """The real thing: the API server lives, and answers by itself that etcd does not."""
    with Sandbox() as own:
        own.apply(crds(operator.crds, GROUP))
        with behind_a_proxy(own, start_operator) as scene:
            scene.ready()
            scene.apply("w", size=1)
            scene.until("w", 1)
            own.etcd.pause()
            try:
                # Lists wait for etcd, until the API server gives up.
                began = time.monotonic()
                scene.proxy.cut_all()
                own.eventually(lambda: _server_errors(scene, since=began), within_seconds=120)
                assert scene.operator.probe("/healthz")[0] == 200
            finally:
                own.etcd.resume()
            own.eventually(lambda: own.apply(widget("w", size=2)))

            scene.until("w", 2, within_seconds=RECOVERY_SECONDS)


def _server_errors(scene: Scene, *, since: float) -> int:
    return scene.proxy.count(lambda request: (request.status or 0) >= 500, since=since)


# --- A4: not recognised -----------------------------------------------------------------------------------------------


def kubeconfig_with(token: Path, sandbox: Sandbox) -> Path:
    """A kubeconfig that names the file with the token, as mounted credentials do."""
    path = token.with_name("kubeconfig")
    path.write_text(
        f"""apiVersion: v1
kind: Config
current-context: here
clusters: [{{name: c, cluster: {{server: "{sandbox.url}", certificate-authority: "{sandbox.ca_file}"}}}}]
users: [{{name: u, user: {{tokenFile: "{token}"}}}}]
contexts: [{{name: here, context: {{cluster: c, user: u}}}}]
""",
        "utf-8",
    )
    return path


def test_a4_a_refused_token_is_read_again_without_a_restart(
    sandbox: Sandbox, start_operator: Start, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("expired", "utf-8")
    at_work = start_operator(handwritten(), kubeconfig=kubeconfig_with(token, sandbox))
    sandbox.eventually(lambda: "unauthorized" in at_work.probe("/readyz")[1])
    assert at_work.probe("/healthz")[0] == 200
    token.write_text(sandbox.token, "utf-8")

    at_work.wait_ready(within_seconds=SEEN_SECONDS)
    assert sandbox.token not in at_work.text


@SLOW
def test_a4_a_token_that_is_revoked_in_the_middle_of_the_work_is_read_again(
    sandbox: Sandbox, start_operator: Start, tmp_path: Path, clean: None
) -> None:
    """The real thing: with its ServiceAccount goes the token, and the next one's token is another."""
    sandbox.apply(documents(operator, image=None, namespace=operator.name, local=True))
    token = tmp_path / "token"
    token.write_text(revoked := sandbox.service_account_token(operator.name, operator.name), "utf-8")
    at_work = start_operator(handwritten(), kubeconfig=kubeconfig_with(token, sandbox), TEST_WATCH_SECONDS="3")
    at_work.wait_ready(within_seconds=SEEN_SECONDS)
    sandbox.delete("v1", "ServiceAccount", operator.name, namespace=operator.name)
    sandbox.eventually(lambda: "unauthorized" in at_work.probe("/readyz")[1], within_seconds=SEEN_SECONDS)
    assert at_work.probe("/healthz")[0] == 200

    sandbox.apply(documents(operator, image=None, namespace=operator.name, local=True))
    token.write_text(fresh := sandbox.service_account_token(operator.name, operator.name), "utf-8")
    sandbox.apply(widget("w"))

    sandbox.eventually(lambda: sandbox.get("v1", "ConfigMap", "w"), within_seconds=RECOVERY_SECONDS)
    sandbox.eventually(lambda: "unauthorized" not in at_work.probe("/readyz")[1], within_seconds=RECOVERY_SECONDS)
    assert at_work.process.poll() is None
    assert revoked not in at_work.text
    assert fresh not in at_work.text


def test_a4_a_single_401_is_not_even_noticed(scene: Scene) -> None:
    scene.ready()
    fault = scene.proxy.add(Fault(Respond(401, b"Unauthorized"), on=is_write))
    scene.apply("w", size=2)
    scene.until("w", 2, within_seconds=5)
    assert fault.hits == 1
    assert not scene.operator.lines("reconcile failed")


# --- A5: not allowed --------------------------------------------------------------------------------------------------


def test_a5_without_leave_to_watch_children_a_handler_that_looks_at_them_does_not_run_in_circles(scene: Scene) -> None:
    """Regression: an apply that changed nothing made the handler run again, without end and without a wait."""
    refusal = scene.proxy.add(Fault(FORBIDDEN, on=of_config_maps, times=None))
    scene.ready()
    assert refusal.hits
    region = {"apiVersion": f"{GROUP}/v1", "kind": "Region", "metadata": {"name": "r"}, "spec": {"colour": "red"}}
    scene.sandbox.apply(region)
    scene.sandbox.eventually(lambda: scene.sandbox.get("v1", "ConfigMap", "region-r"))
    scene.apply("w", size=1)
    scene.until("w", 1)
    scene.sandbox.eventually(lambda: scene.operator.text.count("default/w") > 3)
    scene.sandbox.delete(f"{GROUP}/v1", "Region", "r")

    assert len([line for line in scene.operator.lines("reconciled") if line["object"] == "r"]) < 5


# --- A7: restarted ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("server", "how"),
    [
        ("apiserver", "kill"),
        pytest.param("apiserver", "terminate", marks=SLOW),
        pytest.param("etcd", "kill", marks=SLOW),
    ],
)
def test_a7_a_server_that_restarts_in_the_middle_of_the_work_loses_no_update(
    start_operator: Start, server: str, how: str
) -> None:
    with Sandbox() as own:
        own.apply(crds(operator.crds, GROUP))
        with behind_a_proxy(own, start_operator) as scene:
            scene.ready()
            names = [f"w{number:03}" for number in range(100)]
            create(own, NAMESPACED, [widget(name) for name in [*names, "goes"]])
            for name in [*names, "goes"]:
                scene.until(name, 1)
            patch(own, [f"{NAMESPACED}/{name}" for name in names], {"spec": {"size": 2}})
            scene.delete("goes")
            restarted = getattr(own, server)
            getattr(restarted, how)()
            handled = len({line["object"] for line in scene.operator.lines("reconciled") if line["action"] == "modify"})
            assert handled < len(names), "it goes down in the middle of the work"
            restarted.start()
            patch(own, [f"{NAMESPACED}/{name}" for name in names[:50]], {"spec": {"size": 3}})

            for name in names[:50]:
                scene.until(name, 3)
            for name in names[50:]:
                scene.until(name, 2)
            scene.until_deleted("goes", size=1)
            assert scene.operator.text.count("deleted default/goes") == 1
