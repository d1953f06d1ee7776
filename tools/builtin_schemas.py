"""Makes `runtime/bonny/api/builtin_schemas.json`: structural schemas of the built-in types that custom resources embed.

    python tools/builtin_schemas.py                                     # starts a control plane of its own
    python tools/builtin_schemas.py --server URL --token T --ca-file F  # asks a running one

Run it when the newest supported Kubernetes minor changes. The source is the API server's own OpenAPI document; what a
CustomResourceDefinition cannot say, or would bind users to one minor, is left out:

- descriptions, which `kubectl explain pod.spec` shows, and which would make a pod template ten times as large;
- enumerations, because a later minor may add to them;
- defaults of required fields, and empty objects: the document has one for every Go field that is no pointer.
"""

from __future__ import annotations

import argparse
import json
import ssl
import urllib.request
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from bonny.api.values import IntOrString, Quantity

TABLE = Path(__file__).resolve().parent.parent / "runtime" / "bonny" / "api" / "builtin_schemas.json"
DOCUMENTS = {"io.k8s.api.core.v1": "api/v1", "io.k8s.api.batch.v1": "apis/batch/v1"}
VERSIONS = {
    "io.k8s.api.core.v1": "v1",
    "io.k8s.api.batch.v1": "batch/v1",
    "io.k8s.apimachinery.pkg.apis.meta.v1": "meta/v1",
}
ROOTS = (
    ("io.k8s.api.core.v1", "PodTemplateSpec"),
    ("io.k8s.api.core.v1", "ServiceSpec"),
    ("io.k8s.api.core.v1", "ObjectReference"),
    ("io.k8s.api.core.v1", "SecretReference"),
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
# Of the metadata of a template, what people write; the rest belongs to stored objects.
METADATA_FIELDS = ("annotations", "finalizers", "generateName", "labels", "name", "namespace")
SPECIAL = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": TypeAdapter(Quantity).json_schema(),
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": TypeAdapter(IntOrString).json_schema(),
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": {"type": "string", "format": "date-time"},
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


def fetch(url: str, *, token: str, ca_file: Path | None) -> dict[str, Schema]:
    """The definitions of the documents that the roots are in."""
    context = ssl.create_default_context(cafile=str(ca_file)) if ca_file else ssl.create_default_context()
    definitions: dict[str, Schema] = {}
    for path in DOCUMENTS.values():
        request = urllib.request.Request(f"{url}/openapi/v3/{path}", headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, context=context, timeout=60) as answer:
            definitions |= json.load(answer)["components"]["schemas"]
    return definitions


def render(made: dict[str, dict[str, Schema]]) -> str:
    """One line a definition, sorted, so that a change of the file reads as what Kubernetes changed."""
    blocks = []
    for api_version in sorted(made):
        lines = [
            f'    "{name}": {json.dumps(schema, sort_keys=True, separators=(",", ":"))}'
            for name, schema in sorted(made[api_version].items())
        ]
        blocks.append(f'  "{api_version}": {{\n' + ",\n".join(lines) + "\n  }")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--server", help="URL of a running API server; default: start one")
    parser.add_argument("--token", default="", help="bearer token for --server")
    parser.add_argument("--ca-file", type=Path, help="certificate of --server")
    options = parser.parse_args()
    if options.server:
        definitions = fetch(options.server, token=options.token, ca_file=options.ca_file)
    else:
        from bonny.sandbox import Sandbox  # noqa: PLC0415  (only this branch needs a control plane)

        with Sandbox() as sandbox:
            definitions = fetch(sandbox.url, token=sandbox.token, ca_file=sandbox.ca_file)
    made = table(definitions)
    TABLE.write_text(render(made), encoding="utf-8")
    print(f"{TABLE.name}: {sum(map(len, made.values()))} types, {TABLE.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
