"""Tracing: what becomes of one change on a real API server, as the spans of an operator at work tell it."""

from __future__ import annotations

import urllib.request
from typing import Any

import prometheus_client.openmetrics.parser
from opentelemetry.trace import SpanKind, StatusCode

from bonny import Axn, Controller, Operator, Owned, Reason
from bonny.kinds import Kind
from bonny.telemetry import tracing
from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from tests.support.serving import Serving, serving
from tests.support.things import GROUP, Thing, config_map, thing
from tests.support.traced import Collected, id_of, told, trace_of

NAMESPACE = "traced"
SECRET = "hunter2"
CHILD = "PATCH /api/v1/namespaces/{namespace}/configmaps/{name}"


def controllers(collected: Collected) -> list[type[Controller[Any]]]:
    tracer = collected.provider.get_tracer("user")

    class Things(Controller[Thing]):
        owns = (Owned("v1", "ConfigMap"),)

        async def reconcile(self, axn: Axn[Thing]) -> None:
            with tracer.start_as_current_span("weigh"):
                axn.register_descendant(config_map("child", password=SECRET))
            axn.set_condition("Ready", True)

    class Secrets(Controller[Any]):
        resource = Kind("v1", "Secret", namespace=NAMESPACE)

        def reconcile(self, axn: Axn[Any]) -> None:
            with tracer.start_as_current_span("look"):
                axn.call(axn.client.get(Kind("v1", "ConfigMap"), "nowhere", namespace=NAMESPACE))

    return [Things, Secrets]


def metrics(at_work: Serving) -> str:
    url = f"http://127.0.0.1:{at_work.process.probes.port}/metrics"
    request = urllib.request.Request(url, headers={"Accept": "application/openmetrics-text;version=1.0.0,*/*;q=0.1"})
    with urllib.request.urlopen(request, timeout=5) as answer:
        assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
        text: str = answer.read().decode()
        return text


def test_one_change_is_one_trace_from_its_reason_to_its_requests(sandbox: Sandbox) -> None:
    collected = Collected()
    operator = Operator(
        name="traced", group=GROUP, controllers=controllers(collected), version="1.2", tracing=collected.provider
    )
    sandbox.apply(crds([Thing], GROUP))
    sandbox.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    with serving(operator, sandbox.kubeconfig) as at_work:
        (made,) = sandbox.apply(thing("t1", namespace=NAMESPACE))
        sandbox.eventually(lambda: "add Thing" in [span.name for span in collected.spans])
        text = metrics(at_work)
    assert tracing.spans is None, "what comes after the operator is not its own"

    spans = collected.trace("add Thing")
    handling = spans[-1]
    assert handling.instrumentation_scope is not None
    assert (handling.instrumentation_scope.name, handling.instrumentation_scope.version) == ("bonny", "1.2")
    assert (handling.parent, handling.status.status_code) == (None, StatusCode.UNSET)
    attributes = told(handling)
    assert attributes.pop("bonny.reconcile_id")
    assert attributes == {
        "bonny.controller": "Things",
        "bonny.action": "add",
        "bonny.reasons": (Reason.ADDED.value,),
        "bonny.tries": 0,
        "bonny.outcome": "success",
        "k8s.object.api_version": f"{GROUP}/v1",
        "k8s.object.kind": "Thing",
        "k8s.object.name": "t1",
        "k8s.object.uid": made["metadata"]["uid"],
        "k8s.namespace.name": NAMESPACE,
    }
    steps = [span.name for span in spans if collected.parent(span) == "add Thing"]
    assert [name for name in steps if name.startswith(("Delegate", "Apply", "Prune"))] == [
        "DelegateToController",
        "ApplyDescendants",
        "PruneDescendants",
        "ApplyStatus",
    ]
    assert collected.parent(collected.named("weigh")) == "DelegateToController"
    requests = [span for span in spans if span.kind is SpanKind.CLIENT]
    status = f"PATCH /apis/{GROUP}/v1/namespaces/{{namespace}}/things/{{name}}/status"
    assert [(span.name, collected.parent(span)) for span in requests] == [
        (CHILD, "ApplyDescendants"),
        (status, "ApplyStatus"),
    ]
    assert [told(span)["http.response.status_code"] for span in requests] == [201, 200]

    families = prometheus_client.openmetrics.parser.text_string_to_metric_families(text)
    (seconds,) = (family for family in families if family.name == "controller_runtime_reconcile_time_seconds")
    (exemplar,) = (sample.exemplar for sample in seconds.samples if sample.exemplar)
    assert int(exemplar.labels["trace_id"], 16) == trace_of(handling)
    assert int(exemplar.labels["span_id"], 16) == id_of(handling)
    assert SECRET not in collected.text() + text


def test_a_handler_in_a_thread_that_fails_is_told_by_types_and_statuses(sandbox: Sandbox) -> None:
    collected = Collected()
    _, secrets = controllers(collected)
    operator = Operator(name="traced", group=GROUP, controllers=[secrets], tracing=collected.provider)
    sandbox.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    metadata = {"name": "s1", "namespace": NAMESPACE}
    sandbox.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"password": SECRET}})
    with serving(operator, sandbox.kubeconfig):
        sandbox.eventually(lambda: "add Secret" in [span.name for span in collected.spans])

    named = {span.name: span for span in collected.trace("add Secret")}
    request = named["GET /api/v1/namespaces/{namespace}/configmaps/{name}"]
    look, step, handling = (named[name] for name in ("look", "DelegateToController", "add Secret"))
    assert (told(request)["http.response.status_code"], request.status.status_code) == (404, StatusCode.ERROR)
    assert (request.parent, look.parent, step.parent) == (look.context, step.context, handling.context)
    assert (told(handling)["bonny.outcome"], told(handling)["error.type"]) == ("error", "bonny.client.errors.NotFound")
    assert handling.events == ()
    assert SECRET not in collected.text()
