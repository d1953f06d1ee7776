"""Stubs: the schemas of Kubernetes' own kinds, from the type stubs in `bonny/types`.

You need it to know without a server whether the API server would refuse a child because of a field that does not exist,
or has another type. It does not repeat the checks in the code of Kubernetes: required fields, formats, limits.
"""

from __future__ import annotations

import ast
from functools import cache
from importlib.resources import files
from typing import Any, Final, cast

import msgspec

from bonny.api.stored import as_stored
from bonny.errors import InvalidObject
from bonny.kinds import builtin
from bonny.resource import Resource, gvk_of, identify

from ..crd.validation import problems

SCALARS: Final = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}


def check_fields(resource: Resource) -> None:
    """Raises: `InvalidObject` with the unknown and wrongly typed fields of an object of Kubernetes' own kinds."""
    api_version, kind = gvk_of(resource)
    if builtin(api_version, kind) is None:
        return
    group, _, version = api_version.rpartition("/")
    schema = _schema(f"{group.partition('.')[0] or 'core'}_{version}", kind)
    stored = as_stored(msgspec.to_builtins(resource), schema, prune=False)
    if errors := list(problems(stored, schema, "", strict=True)):
        raise InvalidObject(f"{identify(resource)}: {'; '.join(error.removeprefix('.') for error in errors)}")


def _schema(module: str, name: str) -> Resource:
    """The structural schema of a type; a type that contains itself is a schema that contains itself."""
    if (module, name) not in _made:
        fields: dict[str, Resource] = {}
        _made[module, name] = {"type": "object", "properties": fields}
        fields |= {field: _of(module, node) for field, node in _fields(_names(module)[name]).items()}
    return _made[module, name]


_made: Final[dict[tuple[str, str], Resource]] = {}


@cache
def _names(module: str) -> dict[str, Any]:
    """The classes of a stub, and the modules of the classes that it imports."""
    names: dict[str, Any] = {}
    # Beside these tools: the wheel has the stubs in a package of their own, the template's repository in `bonny`.
    beside = files("bonny_dev").joinpath("..")
    folder = beside.joinpath("bonny-stubs" if beside.joinpath("bonny-stubs").is_dir() else "bonny")
    for node in ast.parse(folder.joinpath("types", f"{module}.pyi").read_text("utf-8")).body:
        match node:
            case ast.ImportFrom(module=str(other), names=imported, level=1):
                names |= {each.name: other for each in imported}
            case ast.ClassDef(name=name) | ast.Assign(targets=[ast.Name(id=name)]):
                names[name] = node
    return names


def _fields(node: Any) -> dict[str, Any]:
    """The annotations of a TypedDict: a class, or a call if Python does not allow the name of a field."""
    if isinstance(node, ast.ClassDef):
        annotated = [each for each in node.body if isinstance(each, ast.AnnAssign)]
        return {cast("ast.Name", each.target).id: each.annotation for each in annotated}
    texts: dict[str, str] = ast.literal_eval(node.value.args[1])
    return {name: cast("ast.Expr", ast.parse(text).body[0]).value for name, text in texts.items()}


def _of(module: str, node: ast.expr) -> Resource:
    match node:
        case ast.Name(id=name) if name in SCALARS:
            return {"type": SCALARS[name]}
        case ast.Name(id=name) if name in _names(module):
            its = _names(module)[name]
            return _schema(its if isinstance(its, str) else module, name)
        case ast.BinOp(left=ast.Name(id=name) as first) if name not in SCALARS:
            return _of(module, first)  # with all the fields of the other
        case ast.Subscript(value=ast.Name(id="list"), slice=item):
            return {"type": "array", "items": _of(module, item)}
        case ast.Subscript(value=ast.Name(id="dict"), slice=ast.Tuple(elts=[_, value])):
            return {"type": "object", "additionalProperties": _of(module, value)}
        case ast.Subscript(value=ast.Name(id="Required"), slice=wanted):
            return _of(module, wanted)
    return {}
