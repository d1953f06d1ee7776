"""Source: the Python module of one version of a definition: its models, and the version class."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, Final

from jinja2 import Environment, PackageLoader

from bonny.api import AGE, Version, WithConditions, WithObservedGeneration
from bonny.api.markers import PRESERVE_UNKNOWN
from bonny.api.schema import structural
from bonny.resource import Resource

from .annotations import field_line, instance, rules_of
from .canonical import OF_EVERY_OBJECT, canonical, canonical_object, shape, without
from .classes import IMPORTS, Classes
from .compare import notable
from .names import field_name
from .sayable import sayable

_WIDTH: Final = 112
_TEMPLATES: Final = Environment(  # noqa: S701  (Python, not HTML)
    loader=PackageLoader("bonny_dev", "scaffold"), trim_blocks=True, lstrip_blocks=True
)
_TEMPLATES.filters |= {"repr": repr, "tuple": tuple}
_MIXINS: Final = (WithConditions, WithObservedGeneration)


def module_source(crd: Resource, version: Resource, *, group: str, hub: bool, alone: bool) -> str:
    """The module of `version`, one of `crd`, not yet formatted.

    `group` is the operator's; `hub` makes it the version that controllers work with; `alone` makes it the stored
    version, too, whatever the definition says.
    """
    kind = crd["spec"]["names"]["kind"]
    schema = sayable(canonical_object(version["schema"]["openAPIV3Schema"]))
    schema["properties"] = without(schema["properties"], *OF_EVERY_OBJECT)
    writer = _Writer(Classes(kind))
    lines = [*writer.models(version, schema), *writer.version(crd, version, schema, group=group, hub=hub, alone=alone)]
    body = "\n".join(lines)
    head = f'"""{kind} {version["name"]}: the fields of the spec and of the status, from its definition."""\n\n'
    return f"{head}{_imports(body)}\n{body}"


class _Writer:
    def __init__(self, classes: Classes) -> None:
        self._classes = classes

    def models(self, version: Resource, schema: Resource) -> Iterator[str]:
        """The models inside the schema of whole objects, then the spec and the status."""
        fields, kind = schema["properties"], self._classes.kind
        for name in ("spec", "status"):
            self._classes.add(fields.get(name, {}), name)
        # Fields beside spec and status can be models themselves.
        self._classes.add({"properties": without(fields, "spec", "status")})
        for name, node in self._classes.models.items():
            yield from self._model(name, ("Model",), node)
        if "spec" in fields and _described(fields["spec"]):
            yield from self._model(f"{kind}Spec", ("Spec",), fields["spec"])
        if (status := _status(version, schema)) is not None:
            mixins = [mixin for mixin in _MIXINS if _has(mixin, status)]
            rest = {
                name: child
                for name, child in status.get("properties", {}).items()
                if name not in [each for mixin in mixins for each in _schema_of(mixin)["properties"]]
            }
            bases = ("Status", *(mixin.__name__ for mixin in mixins))
            yield from self._model(f"{kind}Status", bases, {**status, "properties": rest})

    def version(
        self, crd: Resource, version: Resource, schema: Resource, *, group: str, hub: bool, alone: bool
    ) -> Iterator[str]:
        """The version class."""
        spec, metadata, kind = crd["spec"], crd["metadata"], self._classes.kind
        yield "\n\n" + _TEMPLATES.get_template("version_from_crd.py.j2").render(
            names=spec["names"],
            doc="\n".join(self._doc(schema, f"A {kind}.")),
            version=version,
            group=spec["group"] if spec["group"] != group else "",
            scope=spec["scope"],
            alone=alone,
            hub=hub,
            labels=notable(metadata.get("labels")),
            annotations=notable(metadata.get("annotations")),
            scale=(version.get("subresources") or {}).get("scale"),
            age=(AGE.name, AGE.type, AGE.path),
            rules=rules_of(schema),
        )
        fields, required = schema["properties"], schema.get("required", ())
        if "spec" in fields:
            yield f"    {self._spec(fields['spec'], required='spec' in required)}"
        if (status := _status(version, schema)) is not None:
            default = f" = {instance(f'{kind}Status', status['default'])}" if "default" in status else ""
            yield f"    status: {kind}Status{default}"
        if status is not None and "status" not in (version.get("subresources") or {}):
            yield "    status_subresource = False"
        yield from self._fields(
            without(fields, "spec", "status"), required, taken=[*dir(Version), *Version.__annotations__]
        )

    def _spec(self, node: Resource, *, required: bool) -> str:
        if not _described(node):
            line = field_line(
                "spec", "spec", {"type": "object", PRESERVE_UNKNOWN: True}, required=True, classes=self._classes
            )
            return line if required else f"{line} | None = None"
        name = f"{self._classes.kind}Spec"
        if "default" in node:
            return f"spec: {name} = {instance(name, node['default'])}"
        return f"spec: {name}" if required else f"spec: {name} | None = None"

    def _model(self, name: str, bases: tuple[str, ...], node: Resource) -> Iterator[str]:
        options = ['extra="allow"'] if PRESERVE_UNKNOWN in node else []
        if rules := rules_of(node):
            options.append(f"rules=({', '.join(rules)},)")
        if bases[0] == "Status" and node.get("required"):
            options.append(f"required={tuple(node['required'])!r}")
        yield f"\n\nclass {name}({', '.join((*bases, *options))}):"
        lines = [
            *self._doc(node),
            *self._fields(node.get("properties", {}), [] if bases[0] == "Status" else node.get("required", ())),
        ]
        yield from lines or ["    pass"]

    def _fields(self, fields: Resource, required: Sequence[str], taken: Sequence[str] = ()) -> Iterator[str]:
        names: list[str] = []
        described = True
        for wire, node in fields.items():
            name = field_name(wire, names)
            names.append(f"{name}_" if name in taken else name)
            line = field_line(names[-1], wire, node, required=wire in required, classes=self._classes)
            doc = list(self._doc({} if self._said(node) else node))
            if doc or described:
                yield ""
            yield f"    {line}"
            yield from doc
            described = bool(doc)

    def _said(self, node: Resource) -> bool:
        """Whether the docstring of the model of `node` has its description."""
        models = self._classes.models
        return any(
            each.get("description") == node.get("description") for each in models.values() if shape(each) == shape(node)
        )

    def _doc(self, node: Resource, otherwise: str = "") -> Iterator[str]:
        """The description of `node` as a docstring."""
        lines = node.get("description", "").strip().expandtabs(4).splitlines()
        wrapped = [
            part
            for line in lines or [otherwise]
            for part in textwrap.wrap(
                line,
                _WIDTH,
                subsequent_indent=line[: len(line) - len(line.lstrip())],
                break_long_words=False,
                break_on_hyphens=False,
            )
            or [""]
        ]
        said = "\n".join(wrapped).replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
        if said.endswith('"'):
            said = f'{said[:-1]}\\"'
        if said:
            end = "\n" if len(wrapped) > 1 else ""
            yield from textwrap.indent(f'"""{said}{end}"""', "    ").splitlines()


def _described(node: Resource) -> bool:
    return "properties" in node or PRESERVE_UNKNOWN not in node


def _status(version: Resource, schema: Resource) -> Resource | None:
    """The schema of the status; one without fields where there is the subresource alone."""
    has_subresource = "status" in (version.get("subresources") or {})
    status: Resource | None = schema["properties"].get("status", {} if has_subresource else None)
    return status


def _has(mixin: type[Any], status: Resource) -> bool:
    """Whether the fields of a mixin are in the status as they are."""
    fields = status.get("properties", {})
    return all(
        name in fields and name not in status.get("required", ()) and shape(fields[name]) == shape(child)
        for name, child in _schema_of(mixin)["properties"].items()
    )


def _schema_of(model: type[Any]) -> Resource:
    return canonical(structural(model, where=model.__name__))


def _imports(body: str) -> str:
    """The import lines for the names that `body` uses."""
    used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
    lines = []
    for module, names in IMPORTS.items():
        if needed := sorted(used.intersection(names)):
            lines.append(f"from {module} import {', '.join(needed)}")
    return "\n".join(lines) + "\n"
