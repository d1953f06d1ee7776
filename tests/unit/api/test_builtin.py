"""Built-in types: what the table has, and what it says when it has not."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest
from pydantic import create_model

from bonny.api import BuiltIn, Model
from bonny.errors import OptionError
from bonny_dev.crd.builtin import builtin_schema
from bonny_dev.crd.schema import structural


def test_a_pod_template_is_there_with_everything_inside() -> None:
    containers = builtin_schema("v1", "PodTemplateSpec")["properties"]["spec"]["properties"]["containers"]

    assert containers["x-kubernetes-list-map-keys"] == ["name"]
    ports = containers["items"]["properties"]["ports"]
    assert ports["items"]["properties"]["protocol"] == {"default": "TCP", "type": "string"}
    assert "$ref" not in json.dumps(containers)


def test_what_everybody_embeds_is_there() -> None:
    for api_version, name in (
        ("v1", "Affinity"),
        ("v1", "Container"),
        ("v1", "EnvVar"),
        ("v1", "PersistentVolumeClaimSpec"),
        ("v1", "Probe"),
        ("v1", "ResourceRequirements"),
        ("v1", "ServiceSpec"),
        ("v1", "Toleration"),
        ("v1", "Volume"),
        ("v1", "PersistentVolumeClaim"),
        ("apps/v1", "DeploymentSpec"),
        ("autoscaling/v2", "MetricSpec"),
        ("batch/v1", "JobTemplateSpec"),
        ("networking.k8s.io/v1", "NetworkPolicyPeer"),
        ("rbac.authorization.k8s.io/v1", "PolicyRule"),
        ("meta/v1", "LabelSelector"),
    ):
        assert builtin_schema(api_version, name)["type"] == "object", name


def test_changing_a_schema_does_not_change_the_table() -> None:
    builtin_schema("v1", "EnvVar")["properties"].clear()

    assert builtin_schema("v1", "EnvVar")["properties"]


@pytest.mark.parametrize(
    ("api_version", "name", "why"),
    [
        (
            "v1",
            "PodTemplte",
            "has no PodTemplte of v1: did you mean v1 PodTemplateSpec.* It has .*PodSpec",
        ),
        (
            "apps/v9",
            "X",
            "has no X of apps/v9: .*It has types of apps/v1, autoscaling/v2, batch/v1, meta/v1, .*, v1",
        ),
    ],
)
def test_a_type_that_is_not_there_is_refused_with_what_is(api_version: str, name: str, why: str) -> None:
    model = create_model("Thing", part=(Annotated[dict[str, Any], BuiltIn(api_version, name)], ...), __base__=Model)
    with pytest.raises(OptionError, match=rf"^spec\.part: the table.*{why}"):
        structural(model, where="spec")


def test_the_table_has_nothing_that_a_definition_cannot_say() -> None:
    allowed: set[str] = {"type", "format", "required", "default", "properties", "items", "additionalProperties"}
    allowed |= {"anyOf", "pattern", "x-kubernetes-int-or-string", "x-kubernetes-map-type"}
    allowed |= {"x-kubernetes-list-type", "x-kubernetes-list-map-keys"}

    def keywords(schema: Any) -> set[str]:
        inner = [*schema.get("properties", {}).values(), *(schema[k] for k in ("items",) if k in schema)]
        if "additionalProperties" in schema:
            inner.append(schema["additionalProperties"])
        return set(schema).union(*map(keywords, inner))

    assert keywords(builtin_schema("batch/v1", "JobTemplateSpec")) <= allowed
    assert keywords(builtin_schema("v1", "ServiceSpec")) <= allowed
