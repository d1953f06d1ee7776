"""Reference: a page about the operator's own kinds, as Markdown, from their CRDs and samples."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final

import yaml

from bonny.resource import Resource

from ..crd.builtin import builtin_schema, table

HEAD: Final = "<!-- Written by `invoke api-docs` from the classes in api/ and the objects in samples/: edit those. -->"
# Fields of every object, which the API server explains.
COMMON: Final = ("apiVersion", "kind", "metadata")
BOUNDS: Final = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "the minimum itself is excluded",
    "exclusiveMaximum": "the maximum itself is excluded",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} entries",
    "maxProperties": "at most {} entries",
    "pattern": "matches {}",
    "format": "of the format {}",
}
# A type of Kubernetes with more rows is only named: a template of pods has more than a thousand.
MOST_ROWS: Final = 12
AS_KUBERNETES: Final = "as Kubernetes describes"
IN_CODE: Final = ("pattern", "format")


def page(name: str, definitions: Iterable[Resource], samples: Iterable[Resource]) -> str:
    """The page of the operator `name`; equal definitions and samples give equal text."""
    samples = [*samples]
    blocks = [HEAD, f"# API of {name}"]
    definitions = [*definitions]
    if not definitions:
        blocks.append("The operator has no kinds of its own.")
    for crd in definitions:
        for version in crd["spec"]["versions"]:
            blocks += _version(crd["spec"], version, samples)
    return "\n\n".join(blocks) + "\n"


def _version(spec: Resource, version: Resource, samples: list[Resource]) -> Iterator[str]:
    names, api_version = spec["names"], f"{spec['group']}/{version['name']}"
    schema = version["schema"]["openAPIV3Schema"]
    yield f"## {names['kind']} {version['name']}"
    if text := schema.get("description"):
        yield _prose(text)
    yield "\n".join(f"- {line}" for line in _facts(spec, version, api_version))
    for part, content in schema.get("properties", {}).items():
        if part not in COMMON:
            yield f"### {part} of {names['kind']} {version['name']}"
            if text := content.get("description"):
                yield _prose(text)
            _, *rows = _rows(content, part, required=part in schema.get("required", ()))
            if rows:
                yield "\n".join(["| field | type | default | description and rules |", "|---|---|---|---|", *rows])
            if rules := _rules(content):
                yield f"Rules: {rules}"
    for sample in samples:
        if (sample["apiVersion"], sample["kind"]) == (api_version, names["kind"]):
            yield f"Example:\n\n```yaml\n{yaml.safe_dump(sample, sort_keys=False, allow_unicode=True)}```"


def _facts(spec: Resource, version: Resource, api_version: str) -> Iterator[str]:
    names = spec["names"]
    yield f"apiVersion `{api_version}`, kind `{names['kind']}`"
    short = ", ".join(f"`{each}`" for each in names.get("shortNames", ()))
    yield f"`kubectl get {names['plural']}`{f', or {short}' if short else ''}"
    yield "one object in each namespace by each name" if spec["scope"] == "Namespaced" else "objects have no namespace"
    if version["storage"]:
        yield "objects are stored in this version"
    if not version["served"]:
        yield "this version is not served"
    if version.get("deprecated"):
        yield _prose(version.get("deprecationWarning") or "this version is deprecated")
    for column in version.get("additionalPrinterColumns", ()):
        yield f"kubectl shows `{column['jsonPath']}` as {_cell(column['name'])}"


def _rows(schema: Resource, path: str, *, required: bool) -> Iterator[str]:
    """A row for a field, and for each field below it."""
    default = f"`{_cell(_json(schema['default']))}`" if "default" in schema else "required" if required else ""
    below = [*_rows_below(schema, path)]
    is_large = len(below) > MOST_ROWS or any(AS_KUBERNETES in row for row in below)
    named = _built_in(schema) if is_large else ""
    rules = "; ".join(filter(None, (_rules(schema), named and f"{AS_KUBERNETES} `{named}`")))
    text = " ".join(filter(None, (_cell(_prose(schema.get("description", ""))), _cell(rules) and f"({_cell(rules)})")))
    yield f"| `{_cell(path)}` | {_type(schema)} | {default} | {text} |"
    yield from () if named else below


def _rows_below(schema: Resource, path: str) -> Iterator[str]:
    for name, inner in schema.get("properties", {}).items():
        yield from _rows(inner, f"{path}.{name}", required=name in schema.get("required", ()))
    for key, step in (("items", "[]"), ("additionalProperties", ".*")):
        inner = schema.get(key)
        if isinstance(inner, dict) and ("properties" in inner or "items" in inner or "description" in inner):
            head, *below = _rows(inner, f"{path}{step}", required=False)
            yield from ([head, *below] if "description" in inner or _built_in(inner) else below)


def _built_in(schema: Resource) -> str:
    """The name of the one built-in type that has these fields, such as `batch/v1 JobTemplateSpec`; else empty."""
    fields = schema.get("properties")
    names = [name for name, others in _built_in_fields().items() if others == fields] if fields else []
    return names[0] if len(names) == 1 else ""


@cache
def _built_in_fields() -> dict[str, Resource]:
    return {
        f"{version} {name}": builtin_schema(version, name).get("properties", {})
        for version, types in table().items()
        if version
        for name in types
    }


def _type(schema: Resource) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    values = schema.get("additionalProperties")
    if isinstance(values, dict):
        return f"map of {_type(values)}"
    return str(schema.get("type", "any"))


def _rules(schema: Resource) -> str:
    """The rules for a value beyond its type."""
    found = []
    if "enum" in schema:
        found.append("one of " + ", ".join(f"`{_json(each)}`" for each in schema["enum"]))
    for name, text in BOUNDS.items():
        if schema.get(name) not in (None, False):
            found.append(text.format(f"`{schema[name]}`" if name in IN_CODE else schema[name]))
    if schema.get("uniqueItems") or schema.get("x-kubernetes-list-type") == "set":
        found.append("each item once")
    if keys := schema.get("x-kubernetes-list-map-keys"):
        found.append(f"each item with another {', '.join(f'`{key}`' for key in keys)}")
    if schema.get("nullable"):
        found.append("may be null")
    for rule in schema.get("x-kubernetes-validations", ()):
        message = f"{_prose(rule['message'])}: " if rule.get("message") else ""
        found += [f"{message}`{rule['rule']}`"]
    return "; ".join(found)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _prose(text: str) -> str:
    """A description as Markdown that shows its characters as they are."""
    return text.replace("\\", "\\\\").replace("<", "\\<").replace("*", "\\*").replace("_", "\\_").strip()


def _cell(text: str) -> str:
    """A text in a table: one line, and no end of the cell."""
    return " ".join(text.replace("|", "\\|").split())
