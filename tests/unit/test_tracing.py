"""Tracing: which spans there are, what they tell, and what they never tell."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode

from bonny import Axn, Controller, Kind, PeriodicTask, Retry, TaskRun, Terminal
from bonny.client.metering import Requests
from bonny.client.request import path_of
from bonny.core.queue import Reason
from bonny.core.records import Action
from bonny.engine.reconcile import Step
from bonny.errors import UsageError
from bonny.otel import provider
from bonny.otel.spans import path_template
from bonny.pipeline import Pipeline
from bonny.resource import Resource
from bonny.servers.periodic import PeriodicTasks
from bonny.steps.delegate import DelegateToController
from bonny.telemetry import tracing
from bonny.telemetry.logging import about, reconcile_id
from tests.support.tokens import token_of
from tests.support.traced import Collected, collecting, told
from tests.support.waiting import running, until

ROOT = Path(__file__).parents[2]
SECRET = "hunter2"
MAP: Resource = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "m", "namespace": "n", "uid": "u-1"},
    "data": {"password": SECRET},
}


@pytest.fixture
def collected() -> Iterator[Collected]:
    with collecting() as made:
        yield made


class Maps(Controller[Any]):
    """Calls what it was made with."""

    resource = Kind("v1", "ConfigMap")

    def __init__(self, handler: Callable[[Axn[Any]], object] = lambda axn: None) -> None:
        self.handler = handler

    def reconcile(self, axn: Axn[Any]) -> None:
        self.handler(axn)


def axn_of(controller: Controller[Any] | None = None, **fields: Any) -> Axn[Any]:
    reasons = frozenset({Reason.CHANGED, Reason.CHILD})
    return token_of(MAP, action=Action.MODIFY, reasons=reasons, tries=2, controller=controller, **fields)


async def handled(*steps: Step, axn: Axn[Any] | None = None) -> Axn[Any]:
    """As a worker does it."""
    made = axn or axn_of()
    assert tracing.spans is not None
    with tracing.spans.handling(made, controller="Maps"):
        await Pipeline(steps).run(made)
    return made


def first(axn: Axn[Any]) -> None:
    """A step."""


def second(axn: Axn[Any]) -> None:
    axn.halt()


# --- handlings and steps ----------------------------------------------------------------------------------------------


async def test_a_handling_is_a_trace_of_its_own_and_its_steps_are_its_children(collected: Collected) -> None:
    about(object="n/m")
    with collected.provider.get_tracer("main").start_as_current_span("around the whole operator"):
        await handled(first, second)

    assert [span.name for span in collected.spans] == [
        "first",
        "second",
        "modify ConfigMap",
        "around the whole operator",
    ]
    handling = collected.named("modify ConfigMap")
    assert handling.parent is None
    assert told(handling) == {
        "bonny.controller": "Maps",
        "bonny.action": "modify",
        "bonny.reasons": ("changed", "child"),
        "bonny.tries": 2,
        "bonny.outcome": "success",
        "bonny.reconcile_id": reconcile_id(),
        "k8s.object.api_version": "v1",
        "k8s.object.kind": "ConfigMap",
        "k8s.object.name": "m",
        "k8s.object.uid": "u-1",
        "k8s.namespace.name": "n",
    }
    assert handling.status.status_code is StatusCode.UNSET
    assert {collected.parent(collected.named(step)) for step in ("first", "second")} == {"modify ConfigMap"}


async def test_what_has_no_namespace_has_none_in_its_span(collected: Collected) -> None:
    axn = axn_of()
    axn.resource = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "uid": "u-2"}}
    await handled(first, axn=axn)
    assert "k8s.namespace.name" not in told(collected.named("modify Node"))


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(Retry(), "requeue"), (Retry(after=3.0), "requeue_after")],
)
async def test_who_asks_for_another_try_has_not_failed(collected: Collected, error: Exception, outcome: str) -> None:
    def asks(axn: Axn[Any]) -> None:
        raise error

    with pytest.raises(Retry):
        await handled(asks)

    assert told(collected.named("modify ConfigMap"))["bonny.outcome"] == outcome
    assert {span.status.status_code for span in collected.spans} == {StatusCode.UNSET}


async def test_who_asks_to_be_run_again_later_has_succeeded(collected: Collected) -> None:
    await handled(lambda axn: axn.requeue_after(5))
    assert told(collected.named("modify ConfigMap"))["bonny.outcome"] == "requeue_after"


@pytest.mark.parametrize(
    ("error", "type_"),
    [(ValueError(SECRET), "ValueError"), (Terminal(SECRET), "bonny.errors.Terminal"), (KeyError(SECRET), "KeyError")],
)
async def test_a_failure_is_told_by_its_type_and_never_by_its_text(
    collected: Collected, error: Exception, type_: str
) -> None:
    def fails(axn: Axn[Any]) -> None:
        raise error

    with pytest.raises(type(error)):
        await handled(first, fails)

    for name in ("fails", "modify ConfigMap"):
        span = collected.named(name)
        assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)
        assert told(span)["error.type"] == type_
        assert span.events == ()
    assert told(collected.named("modify ConfigMap"))["bonny.outcome"] == "error"
    assert collected.named("first").status.status_code is StatusCode.UNSET
    assert SECRET not in collected.text()


async def test_what_is_cancelled_with_the_process_has_not_failed(collected: Collected) -> None:
    entered = asyncio.Event()

    async def hangs(axn: Axn[Any]) -> None:
        entered.set()
        await asyncio.Event().wait()

    running = asyncio.create_task(handled(hangs))
    await entered.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    handling = collected.named("modify ConfigMap")
    assert (told(handling)["bonny.outcome"], handling.status.status_code) == ("cancelled", StatusCode.UNSET)


async def test_what_the_sampler_leaves_out_has_no_span_no_request_and_no_exemplar() -> None:
    seen: list[object] = []

    def looks(axn: Axn[Any]) -> None:
        seen.append(cast("Any", tracing.spans).request("GET", "/version", host="h"))

    with collecting():
        await handled(first)
    with collecting(ALWAYS_OFF) as collected:
        await handled(looks)
    assert (collected.spans, seen, tracing.observed.get()) == ([], [None], None)


async def test_the_trace_of_a_handling_is_what_its_duration_is_an_example_of(collected: Collected) -> None:
    await handled(first)
    exemplar, context = tracing.observed.get(), collected.named("modify ConfigMap").context
    assert exemplar is not None
    assert context is not None
    assert (int(exemplar.trace_id, 16), int(exemplar.span_id, 16)) == (context.trace_id, context.span_id)
    assert (len(exemplar.trace_id), len(exemplar.span_id)) == (32, 16)


# --- spans of users ---------------------------------------------------------------------------------------------------


async def test_spans_of_a_handler_are_children_of_its_step_also_in_a_thread_and_in_what_it_calls(
    collected: Collected,
) -> None:
    tracer = collected.provider.get_tracer("user")
    answers: list[str] = []

    async def asked() -> str:
        with tracer.start_as_current_span("on the loop"):
            return "answer"

    def handler(axn: Axn[Any]) -> None:
        with tracer.start_as_current_span("in the thread"):
            answers.append(axn.call(asked()))

    class Later(Controller[Any]):
        resource = Kind("v1", "ConfigMap")

        async def reconcile(self, axn: Any) -> None:
            with tracer.start_as_current_span("in the coroutine"):
                await asyncio.create_task(asked())

    await handled(DelegateToController(), axn=axn_of(Maps(handler)))
    assert answers == ["answer"]
    parents = {span.name: collected.parent(span) for span in collected.spans}
    assert parents == {
        "on the loop": "in the thread",
        "in the thread": "DelegateToController",
        "DelegateToController": "modify ConfigMap",
        "modify ConfigMap": None,
    }

    before = len(collected.spans)
    await handled(DelegateToController(), axn=axn_of(Later()))
    names = [span.name for span in collected.spans[before:]]
    assert names == ["on the loop", "in the coroutine", "DelegateToController", "modify ConfigMap"]
    inner, outer = collected.spans[before : before + 2]
    assert inner.parent == outer.context


async def test_a_task_that_a_handler_registers_is_not_part_of_its_trace(collected: Collected) -> None:
    """A trace that never ends would grow as long as the process lives."""
    tracer = collected.provider.get_tracer("user")
    tasks = PeriodicTasks(cast("Any", None))

    async def ticks(run: TaskRun) -> None:
        with tracer.start_as_current_span("tick"):
            pass

    async with running(tasks.run):
        await asyncio.sleep(0)  # it begins
        await handled(lambda axn: tasks.register(PeriodicTask("t", ticks, interval=0.01)) and None)
        await until(lambda: any(span.name == "tick" for span in collected.spans))
    assert all(span.parent is None for span in collected.spans if span.name == "tick")


# --- requests ---------------------------------------------------------------------------------------------------------


def asks(requests: Requests, *, status: int = 0, error: Exception | None = None) -> Step:
    def step(axn: Axn[Any]) -> None:
        with requests.under_way("PATCH", "/api/v1/namespaces/n/configmaps/m") as request:
            if error is not None:
                raise error
            request.answered(status)

    return step


@pytest.mark.parametrize(
    ("status", "failed"), [(200, False), (201, False), (404, True), (409, True), (429, True), (503, True)]
)
async def test_a_request_is_a_child_of_the_step_that_makes_it(collected: Collected, status: int, failed: bool) -> None:
    requests = Requests()
    requests.host = "127.0.0.1:6443"
    await handled(asks(requests, status=status))

    span = collected.named("PATCH /api/v1/namespaces/{namespace}/configmaps/{name}")
    assert span.kind is SpanKind.CLIENT
    assert collected.parent(span) == "step"
    expected = {
        "http.request.method": "PATCH",
        "url.template": "/api/v1/namespaces/{namespace}/configmaps/{name}",
        "server.address": "127.0.0.1:6443",
        "http.response.status_code": status,
    }
    assert told(span) == (expected | {"error.type": str(status)} if failed else expected)
    assert (span.status.status_code is StatusCode.ERROR) is failed


async def test_a_request_without_an_answer_is_told_by_the_type_of_its_error(collected: Collected) -> None:
    with pytest.raises(ConnectionError):
        await handled(asks(Requests(), error=ConnectionError(SECRET)))
    span = collected.named("PATCH /api/v1/namespaces/{namespace}/configmaps/{name}")
    assert told(span)["error.type"] == "ConnectionError"
    assert "http.response.status_code" not in told(span)
    assert SECRET not in collected.text()


async def test_what_follows_a_kind_is_not_part_of_any_trace(collected: Collected) -> None:
    with Requests().under_way("GET", "/api/v1/pods") as request:
        request.answered(200)
    await handled(first)
    with Requests().under_way("GET", "/api/v1/pods") as request:
        request.answered(200)
    assert [span.name for span in collected.spans] == ["first", "modify ConfigMap"]


@pytest.mark.parametrize(
    ("path", "template"),
    [
        ("/version", "/version"),
        ("/apis", "/apis"),
        ("/apis/apps/v1", "/apis/apps/v1"),
        ("/api/v1/pods", "/api/v1/pods"),
        ("/api/v1/namespaces", "/api/v1/namespaces"),
        ("/api/v1/namespaces/x", "/api/v1/namespaces/{name}"),
        ("/api/v1/namespaces/x/status", "/api/v1/namespaces/{name}/status"),
        ("/api/v1/namespaces/x/pods", "/api/v1/namespaces/{namespace}/pods"),
        ("/api/v1/namespaces/x/pods/y", "/api/v1/namespaces/{namespace}/pods/{name}"),
        ("/api/v1/namespaces/x/pods/y/log", "/api/v1/namespaces/{namespace}/pods/{name}/log"),
        ("/api/v1/namespaces/x/pods/y/proxy/a/b", "/api/v1/namespaces/{namespace}/pods/{name}/proxy"),
        (
            "/apis/apps/v1/namespaces/x/deployments/y/scale",
            "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale",
        ),
        ("/apis/example.com/v1/things/y", "/apis/example.com/v1/things/{name}"),
        ("/somewhere/else/y", "/somewhere"),
    ],
)
def test_a_path_is_told_without_the_names_of_objects(path: str, template: str) -> None:
    assert path_template(path) == template


NAMES = st.text("abcdefgh", min_size=9, max_size=20)


@given(NAMES, NAMES, st.sampled_from(["", "status", "log"]))
def test_no_name_gets_into_the_template_of_a_path(namespace: str, name: str, subresource: str) -> None:
    template = path_template(path_of(Kind("v1", "Pod"), namespace, name, subresource))
    assert namespace not in template
    assert name not in template


# --- switching it on --------------------------------------------------------------------------------------------------


def python(code: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: what OpenTelemetry is told, it is told once for all."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    path = str(ROOT / "runtime")
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**env, "PYTHONPATH": path, **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


FIND = "from bonny.otel import provider\nfound = provider.find(None, service='op', version='1.2')\n"


def test_nothing_of_opentelemetry_is_imported_where_nobody_asks_for_traces() -> None:
    loaded = "import sys, bonny.main\nprint(found, sorted(name for name in sys.modules if name.startswith('opentel')))"
    done = python(FIND + loaded)
    assert (done.stdout, done.stderr) == ("None []\n", "")


@pytest.mark.parametrize(
    "environ",
    [
        {"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"},
        {"OTEL_TRACES_EXPORTER": "console", "OTEL_SDK_DISABLED": "True"},
        {"OTEL_TRACES_EXPORTER": ""},
        {"OTEL_SERVICE_NAME": "op"},
    ],
)
def test_variables_that_ask_for_no_traces_bring_none(environ: dict[str, str]) -> None:
    assert python(FIND + "print(found)", **environ).stdout == "None\n"


def test_a_missing_library_is_named_in_one_sentence() -> None:
    blocked = "import sys\nsys.modules['opentelemetry'] = None\n"
    done = python(blocked + FIND, OTEL_EXPORTER_OTLP_ENDPOINT="http://collector:4318")
    assert done.stderr.splitlines()[-1] == (
        "bonny.errors.UsageError: OTEL_EXPORTER_OTLP_ENDPOINT needs traces, but opentelemetry is not installed: "
        "run `invoke extras --add otel`, and then `uv sync` or pip install -e '.[dev]'"
    )


@pytest.mark.parametrize(
    ("environ", "reason"),
    [
        (
            {"OTEL_TRACES_EXPORTER": "console,pigeons"},
            "Requested component 'pigeons' not found in entry point 'opentelemetry_traces_exporter'",
        ),
        (
            {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "pigeons"},
            "Unsupported OTLP protocol 'pigeons' is configured",
        ),
        (
            {"OTEL_TRACES_EXPORTER": "console", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "4096"},
            "max_export_batch_size must be less than or equal to max_queue_size.",
        ),
        # The exporter that the extra `otel` installs is the default.
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_TRACES_EXPORTER": ""},
            "Requested component 'otlp_proto_http' not found in entry point 'opentelemetry_traces_exporter'",
        ),
    ],
)
def test_an_operator_that_cannot_export_as_it_shall_ends_with_one_sentence(
    tmp_path: Path, environ: dict[str, str], reason: str
) -> None:
    kubeconfig = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {}}],
    }
    (tmp_path / "kubeconfig").write_text(json.dumps(kubeconfig), "utf-8")
    run = "import sys\nfrom bonny import Operator\nfrom bonny.main import main\n"
    run += "sys.exit(main(Operator(name='op', group='example.com'), ['run']))"

    done = python(run, KUBECONFIG=str(tmp_path / "kubeconfig"), **environ)

    sentence = (
        f"OpenTelemetry cannot be set up by the OTEL_* variables ({reason}): correct them, or install the exporter "
        "that they name; the extra `otel` has that for otlp over HTTP"
    )
    # On a busy machine the imports may take so long that the loop counts as blocked.
    told = [line for line in done.stderr.splitlines() if '"logger":"bonny.run.event_loop"' not in line]
    assert (done.returncode, done.stdout, told) == (2, "", [sentence])


def test_the_environment_sets_it_up_for_handlers_too_under_the_name_of_the_operator() -> None:
    ours = """
from types import SimpleNamespace
from opentelemetry import trace
resource = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "uid": "u"}}
axn = SimpleNamespace(action="add", reasons=[], tries=0, resource=resource, requeue_seconds=None, waiting=None)
with found.handling(axn, controller="Pods"), trace.get_tracer("theirs").start_as_current_span("theirs"):
    pass
"""
    done = python(FIND + ours, OTEL_TRACES_EXPORTER="console")
    assert done.stderr == ""
    decoder, spans, rest = json.JSONDecoder(), [], done.stdout.strip()
    while rest:
        span, end = decoder.raw_decode(rest)
        spans.append(span)
        rest = rest[end:].strip()
    theirs, handling = spans
    assert (theirs["name"], handling["name"]) == ("theirs", "add Pod")
    assert theirs["parent_id"] == handling["context"]["span_id"]
    attributes = handling["resource"]["attributes"]
    assert (attributes["service.name"], attributes["service.version"]) == ("op", "1.2")

    named = python(FIND + ours, OTEL_TRACES_EXPORTER="console", OTEL_SERVICE_NAME="another")
    assert '"service.name": "another"' in named.stdout


def test_a_provider_that_the_process_has_is_used_without_any_variable() -> None:
    """As `opentelemetry-instrument` sets one, or the operator's own main."""
    theirs = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
trace.set_tracer_provider(TracerProvider())
"""
    assert python(FIND + "print(found)").stdout == "None\n"
    assert python("from opentelemetry import trace\n" + FIND + "print(found)").stdout == "None\n"
    assert "OtelSpans" in python(theirs + FIND + "print(found)").stdout


def test_what_is_no_provider_is_refused() -> None:
    with pytest.raises(UsageError, match=r"Operator\(tracing='yes'\): give a TracerProvider of OpenTelemetry"):
        provider.find(cast("Any", "yes"), service="op", version="1")


def test_a_given_provider_beats_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "pigeons")
    collected = Collected()
    found = provider.find(collected.provider, service="op", version="1")
    assert found is not None
    with found.handling(axn_of(), controller="Maps"):
        pass
    assert [span.name for span in collected.spans] == ["modify ConfigMap"]
