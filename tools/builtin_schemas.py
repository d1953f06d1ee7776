"""Makes `runtime/bonny/webhooks/builtin_schemas.json`: structural schemas of built-in types that custom kinds embed.

    python -m tools.builtin_schemas                                     # starts a control plane of its own
    python -m tools.builtin_schemas --server URL --token T --ca-file F  # asks a running one

Run it when the newest supported Kubernetes minor changes. The source is the API server's own OpenAPI document; what a
CustomResourceDefinition cannot say, or would bind users to one minor, is left out:

- descriptions, which `kubectl explain pod.spec` shows, and which would make a pod template ten times as large;
- enumerations, because a later minor may add to them;
- defaults of required fields, and empty objects: the document has one for every Go field that is no pointer.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from bonny.api.values import IntOrString, Quantity
from tools.asked import Server, from_options, lines

TABLE = Path(__file__).resolve().parent.parent / "runtime" / "bonny" / "webhooks" / "builtin_schemas.json"
VERSIONS = {
    "io.k8s.api.core.v1": "v1",
    "io.k8s.api.apps.v1": "apps/v1",
    "io.k8s.api.autoscaling.v2": "autoscaling/v2",
    "io.k8s.api.batch.v1": "batch/v1",
    "io.k8s.api.networking.v1": "networking.k8s.io/v1",
    "io.k8s.api.rbac.v1": "rbac.authorization.k8s.io/v1",
    "io.k8s.apimachinery.pkg.apis.meta.v1": "meta/v1",
}
ROOTS = (
    ("io.k8s.api.core.v1", "PodTemplateSpec"),
    ("io.k8s.api.core.v1", "ServiceSpec"),
    ("io.k8s.api.core.v1", "ObjectReference"),
    ("io.k8s.api.core.v1", "SecretReference"),
    ("io.k8s.api.core.v1", "PersistentVolumeClaim"),
    ("io.k8s.api.apps.v1", "DaemonSetSpec"),
    ("io.k8s.api.apps.v1", "DeploymentSpec"),
    ("io.k8s.api.apps.v1", "StatefulSetSpec"),
    ("io.k8s.api.autoscaling.v2", "HorizontalPodAutoscalerSpec"),
    ("io.k8s.api.networking.v1", "IngressSpec"),
    ("io.k8s.api.networking.v1", "NetworkPolicySpec"),
    ("io.k8s.api.rbac.v1", "PolicyRule"),
    ("io.k8s.api.rbac.v1", "RoleRef"),
    ("io.k8s.api.rbac.v1", "Subject"),
    ("io.k8s.api.batch.v1", "JobTemplateSpec"),
)
KEPT = (
    "type",
    "format",
    "nullable",
    "required",
    "additionalProperties",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
)
# The formats that the API server checks and that everybody reads alike.
FORMATS = ("int32", "int64", "date-time")
# Their Go types contain a LocalObjectReference, which is atomic. controller-gen says so of the whole, and the OpenAPI
# document does not; a custom resource should merge like the ones of other operators.
ATOMIC = (
    "ConfigMapEnvSource",
    "ConfigMapProjection",
    "ConfigMapVolumeSource",
    "SecretEnvSource",
    "SecretProjection",
)
# Of the metadata of a template, what people write; the rest belongs to stored objects.
METADATA_FIELDS = ("annotations", "finalizers", "generateName", "labels", "name", "namespace")
SPECIAL = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": TypeAdapter(Quantity).json_schema(),
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": TypeAdapter(IntOrString).json_schema(),
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": {"type": "string", "format": "date-time"},
}

# Half of all fields have one of these schemas; the table holds each once, without an API version.
_STRING: Final = {"type": "string"}
NAMED: Final[dict[str, dict[str, Any]]] = {
    "string": _STRING,
    "boolean": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "int-or-string": SPECIAL["io.k8s.apimachinery.pkg.util.intstr.IntOrString"],
    "quantity": SPECIAL["io.k8s.apimachinery.pkg.api.resource.Quantity"],
    "quantities": {"type": "object", "additionalProperties": "quantity"},
    "strings": {"type": "array", "items": "string", "x-kubernetes-list-type": "atomic"},
    "map-of-strings": {"type": "object", "additionalProperties": "string"},
}

Schema = dict[str, Any]


def table(definitions: dict[str, Schema]) -> dict[str, dict[str, Schema]]:
    """The definitions that the roots reach: {apiVersion: {name: schema}}; references are `apiVersion/name`."""
    made: dict[str, dict[str, Schema]] = {}
    waiting = [f"{package}.{name}" for package, name in ROOTS]
    while waiting:
        full = waiting.pop()
        api_version, name = _short(full)
        if name not in made.setdefault(api_version, {}):
            made[api_version][name] = structural(definitions[full], waiting)
            if name in ATOMIC:
                made[api_version][name]["x-kubernetes-map-type"] = "atomic"
    return made


def structural(node: Schema, waiting: list[str]) -> Schema:
    """One schema of an OpenAPI document as a CustomResourceDefinition says it; names it refers to go to `waiting`."""
    reference = _reference(node)
    if reference in SPECIAL:
        return dict(SPECIAL[reference])
    if reference:
        waiting.append(reference)
        return {"$ref": "/".join(_short(reference))}
    schema = {key: node[key] for key in KEPT if key in node}
    if schema.get("format") not in FORMATS:
        schema.pop("format", None)
    if isinstance(node.get("additionalProperties"), dict):
        schema["additionalProperties"] = structural(node["additionalProperties"], waiting)
    fields = node.get("properties", {})
    if "managedFields" in fields:
        fields = {name: fields[name] for name in METADATA_FIELDS}
        schema.pop("required", None)
    if fields:
        required = schema.get("required", ())
        schema["properties"] = {
            name: structural(fields[name], waiting) | ({} if name in required else _default(fields[name]))
            for name in sorted(fields)
        }
    if "items" in node:
        schema["items"] = structural(node["items"], waiting)
    return schema


def _reference(node: Schema) -> str:
    (one, *others) = node.get("allOf", [node])
    if others:
        raise ValueError(f"an allOf of several parts cannot be expressed: {node}")
    return str(one.get("$ref", "")).rpartition("/")[2]


def _default(node: Schema) -> Schema:
    return {"default": node["default"]} if node.get("default", {}) != {} else {}


def _short(full: str) -> tuple[str, str]:
    package, _, name = full.rpartition(".")
    return VERSIONS[package], name


def fetch(server: Server) -> dict[str, Schema]:
    """The definitions of the documents that the roots are in."""
    definitions: dict[str, Schema] = {}
    documents = {"api/v1", *(f"apis/{version}" for version in VERSIONS.values() if "/" in version)} - {"apis/meta/v1"}
    for path in sorted(documents):
        definitions |= server.get(f"/openapi/v3/{path}")["components"]["schemas"]
    return definitions


def render(made: dict[str, dict[str, Schema]]) -> str:
    short = {"": NAMED} | {version: {name: brief(made[version][name]) for name in made[version]} for version in made}
    return lines({version: [_line(*entry) for entry in sorted(short[version].items())] for version in short})


def brief(schema: Schema) -> Any:
    """The schema as the table has it: names of types in place of references and of schemas in `NAMED`."""
    if schema.keys() == {"$ref"}:
        return schema["$ref"]
    inner: Schema = {key: brief(schema[key]) for key in ("items", "additionalProperties") if key in schema}
    if "properties" in schema:
        inner["properties"] = {name: brief(field) for name, field in schema["properties"].items()}
    made = schema | inner
    return next((name for name, each in NAMED.items() if each == made), made)


def _line(name: str, schema: Schema) -> str:
    return f'"{name}": {json.dumps(schema, sort_keys=True, separators=(",", ":"))}'


def main() -> None:
    """Write the table."""
    made = table(from_options(__doc__ or "", fetch))
    TABLE.write_text(render(made), encoding="utf-8")
    print(f"{TABLE.name}: {sum(map(len, made.values()))} types, {TABLE.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
