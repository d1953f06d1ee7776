"""The yardsticks are served by a real API server, and check what their originals check."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bonny.errors import InvalidObject
from bonny.resource import Resource
from bonny_dev.crd import check_object
from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from tests.support.administrator import Administrator, Answer
from tests.support.yardsticks.certificate import Certificate
from tests.support.yardsticks.http_route import HTTPRoute
from tests.support.yardsticks.service_monitor import ServiceMonitor

pytestmark = pytest.mark.server

GROUP = "yardsticks.example.com"
VERSIONS = {version.kind: version for version in (Certificate, ServiceMonitor, HTTPRoute)}


@pytest.fixture(scope="module")
def server(sandbox: Sandbox) -> Iterator[Administrator]:
    with Administrator(sandbox) as server, server.installed(crds(VERSIONS.values(), GROUP)):
        yield server


def tried(server: Administrator, kind: str, spec: Resource) -> tuple[Resource, Answer]:
    """The object that was sent, and what the server said."""
    version = VERSIONS[kind]
    api_version = f"{GROUP}/{version.version}"
    thing: Resource = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "tried"}, "spec": spec}
    path = f"/apis/{api_version}/namespaces/default/{version.plural}?dryRun=All&fieldValidation=Strict"
    return thing, server.request("POST", path, thing)


@pytest.mark.parametrize("kind", VERSIONS)
def test_a_yardstick_is_established_without_a_complaint(server: Administrator, kind: str) -> None:
    name = f"{VERSIONS[kind].plural}.{GROUP}"
    status = server.request("GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}").body["status"]

    conditions = {condition["type"]: condition["status"] for condition in status["conditions"]}
    assert conditions["Established"] == "True"
    assert "NonStructuralSchema" not in conditions


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        (
            "Certificate",
            {
                "secretName": "web-tls",
                "issuerRef": {"name": "ca"},
                "dnsNames": ["example.com"],
                "usages": ["digital signature"],
            },
        ),
        (
            "ServiceMonitor",
            {
                "selector": {"matchLabels": {"app": "web"}},
                "nativeHistogramMinBucketFactor": 1.0,
                "endpoints": [{"targetPort": "metrics", "interval": "30s", "basicAuth": {"username": {"key": "user"}}}],
            },
        ),
        (
            "HTTPRoute",
            {
                "parentRefs": [{"name": "gateway"}, {"name": "gateway", "sectionName": "https"}],
                "rules": [
                    {
                        "filters": [{"type": "RequestHeaderModifier", "requestHeaderModifier": {"remove": ["x"]}}],
                        "backendRefs": [{"name": "web", "port": 80}],
                    }
                ],
            },
        ),
        ("HTTPRoute", {}),
    ],
)
def test_an_object_is_stored_as_the_class_says(server: Administrator, kind: str, spec: Resource) -> None:
    thing, answer = tried(server, kind, spec)

    assert answer.status == 201, answer.message
    assert check_object(VERSIONS[kind], thing)["spec"] == answer.body["spec"]
    assert VERSIONS[kind].spec_of(check_object(VERSIONS[kind], thing)) == VERSIONS[kind].spec_of(answer.body)


@pytest.mark.parametrize(
    ("kind", "spec", "field"),
    [
        ("Certificate", {"issuerRef": {"name": "ca"}}, "spec.secretName"),
        ("Certificate", {"secretName": "s", "issuerRef": {}}, "spec.issuerRef.name"),
        ("Certificate", {"secretName": "s", "issuerRef": {"name": "ca"}, "usages": ["flying"]}, "spec.usages[0]"),
        ("ServiceMonitor", {"selector": {}, "endpoints": [{"interval": "soon"}]}, "spec.endpoints[0].interval"),
        ("ServiceMonitor", {"selector": {}, "endpoints": [{"targetPort": 1.5}]}, "spec.endpoints[0].targetPort"),
        (
            "ServiceMonitor",
            {"selector": {}, "endpoints": [], "scrapeProtocols": ["PrometheusProto", "PrometheusProto"]},
            "spec.scrapeProtocols[1]",
        ),
        (
            "HTTPRoute",
            {"rules": [{"matches": [{"headers": [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}]}]}]},
            "spec.rules[0].matches[0].headers[1]",
        ),
    ],
)
def test_what_does_not_fit_is_refused_by_the_name_of_the_field(
    server: Administrator, kind: str, spec: Resource, field: str
) -> None:
    thing, answer = tried(server, kind, spec)

    assert answer.status == 422, answer.body
    assert field in answer.message
    with pytest.raises(InvalidObject) as refused:
        check_object(VERSIONS[kind], thing)
    assert str(refused.value).startswith(f"{field}: ")


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"filters": [{"type": "RequestMirror"}]}, "requestMirror belongs to type RequestMirror"),
        (
            {"filters": [{"type": "URLRewrite", "urlRewrite": {}, "requestRedirect": {}}]},
            "requestRedirect belongs to type RequestRedirect",
        ),
        ({"filters": [{"type": "URLRewrite", "urlRewrite": {}}] * 2}, "URLRewrite may be there once"),
        ({"backendRefs": [{"name": "web"}]}, "a Service is named with a port"),
        ({"matches": [{"path": {"value": "web"}}]}, "spec.rules[0].matches[0].path.value"),
        (
            {
                "filters": [{"type": "RequestRedirect", "requestRedirect": {}}],
                "backendRefs": [{"name": "w", "port": 1}],
            },
            "what is redirected goes to no backend",
        ),
    ],
)
def test_rules_over_several_fields_are_checked(server: Administrator, rule: dict[str, Any], message: str) -> None:
    _, answer = tried(server, "HTTPRoute", {"rules": [rule]})

    assert answer.status == 422
    assert message in answer.message


def test_a_rule_over_a_list_compares_its_items(server: Administrator) -> None:
    _, answer = tried(server, "HTTPRoute", {"parentRefs": [{"name": "g"}, {"name": "g", "namespace": ""}]})

    assert answer.status == 422
    _, answer = tried(server, "HTTPRoute", {"parentRefs": [{"name": "g"}, {"name": "g"}]})
    assert "references to the same parent need different sections" in answer.message


def test_a_deprecated_version_warns_its_users(server: Administrator) -> None:
    _, answer = tried(server, "HTTPRoute", {})

    assert answer.warnings == (f'299 - "{HTTPRoute.deprecation_warning}"',)
