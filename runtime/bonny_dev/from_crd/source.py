"""Source: the Python module of one version of a definition: its models, and the version class."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from jinja2 import Environment, PackageLoader

from bonny.api import AGE, WithConditions, WithObservedGeneration
from bonny.api.markers import AS_IS, PRESERVE_UNKNOWN
from bonny.resource import Resource

from ..crd.definition import shows
from ..crd.names import resembles
from ..crd.schema import structural
from .annotations import field_line, rules_of
from .canonical import OF_EVERY_OBJECT, canonical, canonical_object, shape, without
from .classes import IMPORTS, Classes
from .compare import notable
from .names import field_name
from .sayable import sayable

_WIDTH: Final = 112
_TEMPLATES: Final = Environment(  # noqa: S701  (Python, not HTML)
    loader=PackageLoader("bonny_dev", "scaffold"), trim_blocks=True, lstrip_blocks=True
)
_TEMPLATES.filters |= {"repr": repr, "tuple": tuple, "notable": notable}
_MIXINS: Final = {
    mixin.__name__: sayable(canonical(structural(mixin, where=mixin.__name__)), own=True)["properties"]
    for mixin in (WithConditions, WithObservedGeneration)
}


class _Class(NamedTuple):
    """A model: the fields are lines, each with its docstring."""

    name: str
    bases: Sequence[str]
    doc: str
    fields: Sequence[tuple[str, str]]


class Source(NamedTuple):
    """The parts of a module: its models, the version class, and the schemas in the file beside it."""

    kind: str
    version: str
    models: str
    version_class: str
    schemas: Resource

    def module(self, origin: str = "") -> str:
        """The module, not yet formatted; `origin` is the module whose models and schemas it imports."""
        body = self.version_class if origin else f"{self.models}\n\n{self.version_class}"
        used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
        modules = dict(IMPORTS)
        if origin:
            modules[origin] = ("SCHEMAS", *(each.name for each in ast.parse(self.models).body if hasattr(each, "name")))
        elif self.schemas:
            body, used = f"SCHEMAS = schemas_beside(__file__)\n\n\n{body}", {*used, "schemas_beside"}
        lines = [
            f"from {module} import {', '.join(needed)}\n"
            for module, names in modules.items()
            if (needed := sorted(used.intersection(names)))
        ]
        head = f'"""{self.kind} {self.version}: the fields of the spec and of the status, from its definition."""'
        return f"{head}\n\n{''.join(lines)}\n{body}"


def version_source(crd: Resource, version: Resource, *, group: str, hub: bool, alone: bool) -> Source:
    """The source of `version`, one of `crd`.

    `group` is the operator's; `hub` makes it the version that controllers work with; `alone` makes it the stored
    version, too, whatever the definition says.
    """
    kind = crd["spec"]["names"]["kind"]
    whole = canonical_object(version["schema"]["openAPIV3Schema"])
    columns = [each for each in version.get("additionalPrinterColumns") or () if shows(each["jsonPath"], whole)]
    schema = sayable(whole, own=True)
    fields = schema["properties"] = without(schema["properties"], *OF_EVERY_OBJECT)
    fields |= {
        name: _half(sayable(whole["properties"][name], own=True)) for name in ("spec", "status") if name in fields
    }
    required = schema.get("required", ())
    status = _status(version, schema)
    if status is not None:
        fields["status"] = status
    classes = Classes(kind)
    models = _TEMPLATES.get_template("models_from_crd.py.j2").render(models=[*_models(schema, classes)])
    body = _TEMPLATES.get_template("version_from_crd.py.j2").render(
        crd=crd,
        version=version,
        columns=columns,
        group=group,
        hub=hub,
        alone=alone,
        age=(AGE.name, AGE.type, AGE.path),
        doc=_doc(schema, f"A {kind}."),
        rules=rules_of(schema),
        status=status,
        halves=[*_halves(fields, required, classes)],
        fields=[*_fields(without(fields, "spec", "status"), required, classes, reserved=resembles)],
    )
    return Source(kind, version["name"], models, body, classes.schemas)


def _half(node: Resource) -> Resource:
    """A spec or status. That it may be null does not make it optional, and is kept as it is."""
    if "nullable" not in node:
        return node
    return without(node, "nullable") | {AS_IS: {**node.get(AS_IS, {}), "nullable": True}}


def _halves(fields: Resource, required: Sequence[str], classes: Classes) -> Iterator[str]:
    """The lines of the spec and of the status, which is never required of a handler."""
    for name in ("spec", "status"):
        if name in fields:
            needed = name in required or name == "status"
            yield field_line(name, name, fields[name], required=needed, classes=classes)


def _models(schema: Resource, classes: Classes) -> Iterator[_Class]:
    """The models inside the schema of whole objects, then the spec and the status."""
    fields, kind = schema["properties"], classes.kind
    for name in fields:
        if name in ("spec", "status"):
            classes.add(fields[name], name)
    # Fields beside spec and status can be models themselves.
    classes.add({"properties": without(fields, "spec", "status")})
    for name, node in classes.models.items():
        described = without(node, "description") | {"description": classes.description_of(name)}
        yield _model(name, ("Model",), described, classes)
    if classes.name_of(spec := fields.get("spec", {})):
        yield _model(f"{kind}Spec", ("Spec",), spec, classes)
    if "status" in fields:
        status = fields["status"]
        mixins = {name: own for name, own in _MIXINS.items() if _has(status, own)}
        rest = without(status.get("properties", {}), *(each for own in mixins.values() for each in own))
        yield _model(f"{kind}Status", ("Status", *mixins), {**status, "properties": rest}, classes)


def _model(name: str, bases: tuple[str, ...], node: Resource, classes: Classes) -> _Class:
    required = node.get("required", ())
    options = ['extra="allow"'] if PRESERVE_UNKNOWN in node else []
    if rules := rules_of(node):
        options.append(f"rules=({', '.join(rules)},)")
    if bases[0] == "Status" and required:
        options.append(f"required={tuple(required)!r}")
        required = ()
    return _Class(name, (*bases, *options), _doc(node), [*_fields(node.get("properties", {}), required, classes)])


def _fields(
    fields: Resource, required: Sequence[str], classes: Classes, reserved: Callable[[str], object] | None = None
) -> Iterator[tuple[str, str]]:
    """The line of each field, and its docstring; with `reserved` names, of a version, which reads no docstrings."""
    names: list[str] = []
    for wire, node in fields.items():
        names.append(field_name(wire, names, reserved=reserved or (lambda _: False)))
        name, description = classes.name_of(node), node.get("description", "")
        described = "" if name in classes.models and classes.description_of(name) == description else description
        inside = described if reserved else ""
        line = field_line(names[-1], wire, node, required=wire in required, classes=classes, description=inside)
        yield line, "" if reserved else _doc({"description": described})


def _doc(node: Resource, otherwise: str = "") -> str:
    """The description of `node` as a docstring; empty for none."""
    lines = node.get("description", "").strip().expandtabs(4).splitlines()
    wrapped = [part for line in lines or [otherwise] for part in _wrapped(line)]
    said = "\n".join(wrapped).replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    if said.endswith('"'):
        said = f'{said[:-1]}\\"'
    end = "\n" if len(wrapped) > 1 else ""
    return textwrap.indent(f'"""{said}{end}"""', "    ") if said else ""


def _wrapped(line: str) -> list[str]:
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.wrap(line, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) or [""]


def _status(version: Resource, schema: Resource) -> Resource | None:
    """The schema of the status; one without fields where there is the subresource alone."""
    has_subresource = "status" in (version.get("subresources") or {})
    status: Resource | None = schema["properties"].get("status", {"type": "object"} if has_subresource else None)
    return status


def _has(status: Resource, mixed_in: Resource) -> bool:
    """Whether the fields of a mixin are in the status as they are."""
    fields = status.get("properties", {})
    return all(
        name in fields and name not in status.get("required", ()) and shape(fields[name]) == shape(child)
        for name, child in mixed_in.items()
    )
