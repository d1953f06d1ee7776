"""Makes the stubs in `runtime/bonny/types`: the objects of Kubernetes as TypedDicts, for type checkers and editors.

    python -m tools.builtin_types                                     # starts a control plane of its own
    python -m tools.builtin_types --server URL --token T --ca-file F  # asks a running one

Run it when the newest supported Kubernetes minor changes. The source is the API server's own OpenAPI document. An
object that is applied holds what one field manager wants, so only apiVersion, kind and metadata.name are required.
Enumerations are strings, because a later minor may add to them. Of each description the first sentence stays, which
editors show; `kubectl explain` has the rest, which would make the stubs three times as large.
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tools.asked import Server, from_options

FOLDER = Path(__file__).resolve().parent.parent / "runtime" / "bonny" / "types"
META = "io.k8s.apimachinery.pkg.apis.meta.v1"
# The metadata of an object; that of a template, ObjectMeta, needs no name.
NAMED_META = f"{META}.NamedMeta"
CLAIM = "io.k8s.api.core.v1.PersistentVolumeClaim"
SCALARS = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "str | float",  # `cpu: 1` is a number in YAML, too
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "int | str",
}
TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "object": "dict[str, Any]"}

Schema = dict[str, Any]


def stubs(definitions: Mapping[str, Schema]) -> dict[str, str]:
    """The text of each file by its name, such as `apps_v1.pyi`: all kinds, and what they are made of."""
    meta = definitions[f"{META}.ObjectMeta"]
    types = Types({**definitions, NAMED_META: {**meta, "required": ["name"]}})
    types.add(sorted(name for name, schema in definitions.items() if is_kind(schema)))
    files = {f"{module}.pyi": types.module(module) for module in sorted(types.classes)}
    # pyright warns of a stub without a module.
    return files | {f"{module}.py": f'"""See {module}.pyi."""\n' for module in types.classes}


def is_kind(schema: Schema) -> bool:
    """Whether objects of this type have a name of their own, unlike lists and options."""
    metadata = schema.get("properties", {}).get("metadata", {})
    return "x-kubernetes-group-version-kind" in schema and reference(metadata) == f"{META}.ObjectMeta"


def reference(node: Schema) -> str:
    """The full name of the type that `node` refers to; empty if it is described in place."""
    (one, *_) = node.get("allOf", [node])
    return str(one.get("$ref", "")).rpartition("/")[2]


class Types:
    """The classes that were asked for, and all classes that they refer to, by module and name."""

    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._definitions = definitions
        self._waiting: list[str] = []
        self._imports: dict[str, dict[str, set[str]]] = {}
        self.classes: dict[str, dict[str, str]] = {}

    def add(self, names: Iterable[str]) -> None:
        self._waiting += names
        while self._waiting:
            module, name = _place(full := self._waiting.pop())
            if name not in self.classes.setdefault(module, {}):
                self.classes[module][name] = self._class(full)

    def module(self, module: str) -> str:
        """The text of a file."""
        body = "\n\n".join(text for _, text in sorted(self.classes[module].items()))
        used = [name for name in ("Any", "Literal", "Required", "TypedDict") if name in body]
        imports = [
            f"from .{home} import {', '.join(sorted(names))}\n"
            for home, names in sorted(self._imports.get(module, {}).items())
        ]
        lines = [
            f'"""Types of {module.replace("_", "/")}, by tools/builtin_types.py from the OpenAPI of Kubernetes."""\n'
        ]
        lines += ["\n", f"from typing import {', '.join(used)}\n", "\n", *imports, "\n"]
        return "".join(lines) + body

    def _class(self, full: str) -> str:
        module, name = _place(full)
        schema = self._definitions[full]
        described = schema["properties"]
        fields = {field: self._field(described[field], module) for field in sorted(described)}
        required = schema.get("required", ()) if full == NAMED_META else ()
        if is_kind(schema):
            (kind, *_) = schema["x-kubernetes-group-version-kind"]
            fields["apiVersion"] = f'Literal["{"/".join(filter(None, (kind["group"], kind["version"])))}"]'
            fields["kind"] = f'Literal["{kind["kind"]}"]'
            fields["metadata"] = self._named(NAMED_META, module)
            required = ("apiVersion", "kind", "metadata")
        fields |= {field: f"Required[{fields[field]}]" for field in required}
        if all(
            field.isidentifier() and not keyword.iskeyword(field) and field not in TYPES.values() for field in fields
        ):
            parts = (f"    {field}: {text}\n{_docstring(described.get(field, {}))}" for field, text in fields.items())
            return f"class {name}(TypedDict, total=False):\n{_docstring(schema)}{''.join(parts)}"
        lines = "".join(f"        {json.dumps(field)}: {json.dumps(text)},\n" for field, text in fields.items())
        return f'{name} = TypedDict(\n    "{name}",\n    {{\n{lines}    }},\n    total=False,\n)\n'

    def _field(self, node: Schema, module: str) -> str:
        if full := reference(node):
            return self._named(full, module)
        if node.get("type") == "array":
            item = self._field(node["items"], module)
            # In a StatefulSet: the API server fills in the type of a claim that is a template.
            bare = f" | {self._named(f'{full}Template', module)}" if (full := reference(node["items"])) == CLAIM else ""
            return f"list[{item}{bare}]"
        if isinstance(node.get("additionalProperties"), dict):
            return f"dict[str, {self._field(node['additionalProperties'], module)}]"
        return TYPES.get(node.get("type", ""), "Any")

    def _named(self, full: str, module: str) -> str:
        """The type `full` as the text of `module` names it; a type without fields of its own is written out."""
        if full in SCALARS:
            return SCALARS[full]
        schema = self._definitions[full]
        if "properties" not in schema:
            return self._field(schema, module)
        self._waiting.append(full)
        home, name = _place(full)
        if home != module:
            self._imports.setdefault(module, {}).setdefault(home, set()).add(name)
        return name


def _docstring(node: Schema) -> str:
    """The first sentence of a description as a line of its own; empty without one."""
    sentence = re.split(r"(?<=[a-z0-9)`'\"]\.)\s|\n", node.get("description", ""), maxsplit=1)[0].strip()
    return f"    {json.dumps(sentence, ensure_ascii=False)}\n" if sentence else ""


def _place(full: str) -> tuple[str, str]:
    """The module and the name of a type: `io.k8s.api.apps.v1.Deployment` gives `apps_v1` and `Deployment`."""
    *_, group, version, name = full.split(".")
    return f"{group}_{version}", name


def fetch(server: Server) -> dict[str, Schema]:
    """The definitions in the documents of all groups."""
    definitions: dict[str, Schema] = {}
    for path in server.get("/openapi/v3")["paths"]:
        # Groups with a dot and another ending belong to custom resources.
        if path == "api/v1" or (path.startswith("apis/") and path.count("/") == 2):
            definitions |= server.get(f"/openapi/v3/{path}").get("components", {}).get("schemas", {})
    return {name: schema for name, schema in definitions.items() if name.startswith("io.k8s.")}


def main() -> None:
    """Write the stubs."""
    made = stubs(from_options(__doc__ or "", fetch))
    for old in FOLDER.glob("*_v*.py*"):
        old.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    print(f"{FOLDER.name}: {len(made)} files, {sum(map(len, made.values())) / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
