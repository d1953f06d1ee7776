"""Rows A: what the API server may answer, refuse or leave out (docs/reliability.md)."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from bonny.api.crd import crds
from bonny.sandbox import Sandbox
from bonny.testing.faults import Drop, Effect, Fault, Status, is_any, is_write
from tests.conftest import Start
from tests.faults.scene import (
    FORBIDDEN,
    GROUP,
    HTML,
    SEEN_SECONDS,
    SLOW,
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
def test_a1_throttled_requests_wait_as_long_as_they_are_told(
    scene: Scene, on: Predicate, retry_after: str | None
) -> None:
    scene.ready()
    began = time.monotonic()
    fault = scene.proxy.add(Fault(Status(429, THROTTLED, retry_after=retry_after), on=on, times=3))
    scene.proxy.cut_all()
    scene.apply("w", size=1)

    scene.until("w", 1)

    assert fault.hits == 3
    asked = [request for request in list(scene.proxy.requests) if request.time >= began and on(request)]
    refusals = [number for number, request in enumerate(asked) if request.status == 429]
    assert len(refusals) == 3
    waits = [asked[number + 1].time - asked[number].time for number in refusals]
    assert min(waits) >= float(retry_after or 1)


# --- A2: broken -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "effect",
    [
        pytest.param(refused(500, "InternalError", "etcdserver: request timed out"), id="500-etcd"),
        pytest.param(Status(502, HTML, "text/html"), id="502-html", marks=SLOW),
        pytest.param(Status(503), id="503-empty", marks=SLOW),
        pytest.param(Status(504, b"etcdserver: request timed out"), id="504-text", marks=SLOW),
        pytest.param(Status(200, HTML, "text/html"), id="200-html", marks=SLOW),
        pytest.param(Status(200, b'{"kind":"WidgetList","items":['), id="200-half"),
        pytest.param(Status(302, b"moved"), id="302", marks=SLOW),
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


def test_a2_probes_tell_a_dead_server_from_a_dead_operator(scene: Scene) -> None:
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
        attempts = [line["stream"] for line in at_work.lines("cannot follow")]
        assert "unreachable" in at_work.probe("/readyz")[1]
        # Waits of 0.8 s to 30 s, doubling: 60 s have room for six bounds, of which chance may take a small part each.
        assert attempts
        assert max(attempts.count(stream) for stream in attempts) <= 30
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
                # The widget's repair is a write, and fails with the API server's own words.
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


def test_a4_a_single_401_is_not_even_noticed(scene: Scene) -> None:
    scene.ready()
    fault = scene.proxy.add(Fault(Status(401, b"Unauthorized"), on=is_write))
    scene.apply("w", size=2)
    scene.until("w", 2, within_seconds=5)
    assert fault.hits == 1
    assert not scene.operator.lines("handling failed")


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

    assert len([line for line in scene.operator.lines("handled") if line["object"] == "r"]) < 5


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
            names = [f"w{number}" for number in range(20)]
            create(own, NAMESPACED, [widget(name) for name in names])
            for name in names:
                scene.until(name, 1)
            patch(own, [f"{NAMESPACED}/{name}" for name in names], {"spec": {"size": 2}})
            scene.delete("w19")
            restarted = getattr(own, server)
            getattr(restarted, how)()
            handled = sum(1 for name in names if len(scene.handled(name, action="modify")))
            restarted.start()
            patch(own, [f"{NAMESPACED}/{name}" for name in names[:10]], {"spec": {"size": 3}})

            for name in names[:10]:
                scene.until(name, 3)
            for name in names[10:19]:
                scene.until(name, 2)
            scene.sandbox.eventually(lambda: "deleted default/w19" in scene.operator.text, within_seconds=SEEN_SECONDS)
            assert scene.operator.text.count("deleted default/w19") == 1
            assert handled < 20, "the restart was in the middle of the work"
