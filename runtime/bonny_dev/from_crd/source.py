"""Source: the Python module of one version of a definition: its models, and the version class."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

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
_TEMPLATES.filters |= {"repr": repr, "tuple": tuple, "notable": notable, "instance": instance}
_MIXINS: Final = {
    mixin.__name__: canonical(structural(mixin, where=mixin.__name__))["properties"]
    for mixin in (WithConditions, WithObservedGeneration)
}


class _Class(NamedTuple):
    """A model: the fields are lines, each with its docstring."""

    name: str
    bases: Sequence[str]
    doc: str
    fields: Sequence[tuple[str, str]]


def described(node: Resource) -> bool:
    """Whether the fields of an object are known."""
    return "properties" in node or PRESERVE_UNKNOWN not in node


_TEMPLATES.tests["described"] = described


def module_source(crd: Resource, version: Resource, *, group: str, hub: bool, alone: bool) -> str:
    """The module of `version`, one of `crd`, not yet formatted.

    `group` is the operator's; `hub` makes it the version that controllers work with; `alone` makes it the stored
    version, too, whatever the definition says.
    """
    kind = crd["spec"]["names"]["kind"]
    schema = sayable(canonical_object(version["schema"]["openAPIV3Schema"]))
    fields = schema["properties"] = without(schema["properties"], *OF_EVERY_OBJECT)
    required = schema.get("required", ())
    classes = Classes(kind)
    models = [*_models(version, schema, classes)]
    taken = [*dir(Version), *Version.__annotations__]
    body = _TEMPLATES.get_template("version_from_crd.py.j2").render(
        crd=crd,
        version=version,
        group=group,
        hub=hub,
        alone=alone,
        age=(AGE.name, AGE.type, AGE.path),
        models=models,
        doc=_doc(schema, f"A {kind}."),
        rules=rules_of(schema),
        spec=fields.get("spec"),
        status=_status(version, schema),
        required=required,
        fields=_fields(without(fields, "spec", "status"), required, classes, taken),
    )
    head = f'"""{kind} {version["name"]}: the fields of the spec and of the status, from its definition."""\n\n'
    return f"{head}{_imports(body)}\n{body}"


def _models(version: Resource, schema: Resource, classes: Classes) -> Iterator[_Class]:
    """The models inside the schema of whole objects, then the spec and the status."""
    fields, kind = schema["properties"], classes.kind
    for name in ("spec", "status"):
        classes.add(fields.get(name, {}), name)
    # Fields beside spec and status can be models themselves.
    classes.add({"properties": without(fields, "spec", "status")})
    for name, node in classes.models.items():
        yield _model(name, ("Model",), node, classes)
    if "spec" in fields and described(fields["spec"]):
        yield _model(f"{kind}Spec", ("Spec",), fields["spec"], classes)
    if (status := _status(version, schema)) is not None:
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
    fields: Resource, required: Sequence[str], classes: Classes, taken: Sequence[str] = ()
) -> Iterator[tuple[str, str]]:
    """The line of each field, and its docstring."""
    names: list[str] = []
    for wire, node in fields.items():
        name = field_name(wire, names)
        names.append(f"{name}_" if name in taken else name)
        line = field_line(names[-1], wire, node, required=wire in required, classes=classes)
        yield line, _doc({} if _said(node, classes) else node)


def _said(node: Resource, classes: Classes) -> bool:
    """Whether the docstring of the model of `node` has its description."""
    models = (each for each in classes.models.values() if shape(each) == shape(node))
    return node.get("description") in (each.get("description") for each in models)


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
    status: Resource | None = schema["properties"].get("status", {} if has_subresource else None)
    return status


def _has(status: Resource, mixed_in: Resource) -> bool:
    """Whether the fields of a mixin are in the status as they are."""
    fields = status.get("properties", {})
    return all(
        name in fields and name not in status.get("required", ()) and shape(fields[name]) == shape(child)
        for name, child in mixed_in.items()
    )


def _imports(body: str) -> str:
    """The import lines for the names that `body` uses."""
    used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
    lines = []
    for module, names in IMPORTS.items():
        if needed := sorted(used.intersection(names)):
            lines.append(f"from {module} import {', '.join(needed)}")
    return "\n".join(lines) + "\n"
