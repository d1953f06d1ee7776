"""Survey: the API versions of a repository, read from its source without importing it.

You need it to add to existing versions. It works before anything is installed, and while other files are half edited.
Computed values are not seen.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bonny.errors import UsageError
from bonny.naming import plural_of

from ..project import Project


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersion:
    """One class of the `api` package, in the file `path` of the repository; `lines` has the line of each assignment."""

    path: Path
    kind: str
    plural: str
    version: str
    group: str
    cluster_scoped: bool
    hub: bool
    storage: bool
    short_names: tuple[str, ...]
    lines: dict[str, int]


def api_versions(project: Project) -> tuple[ApiVersion, ...]:
    """Every class below `api/` that names a kind and a version, in the order of their paths."""
    group = group_of_operator(project)
    modules = {path.relative_to(project.root): _parsed(path) for path in sorted((project.source / "api").rglob("*.py"))}
    return tuple(version for path, module in modules.items() for version in api_versions_in(path, module, group))


def api_versions_in(path: Path, module: ast.Module, group: str) -> tuple[ApiVersion, ...]:
    """The versions in one module, whether or not it is written already; `group` is that of the operator."""
    classes = [node for node in ast.walk(module) if isinstance(node, ast.ClassDef)]
    return tuple(version for node in classes if (version := _api_version(path, node, group)) is not None)


def group_of_operator(project: Project) -> str:
    """The `group=` of the `Operator(...)` in operator.py.

    Raises: `UsageError` when it is not written out there.
    """
    path = project.source / "operator.py"
    for node in ast.walk(_parsed(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Operator":
            for keyword in node.keywords:
                if keyword.arg == "group" and isinstance(keyword.value, ast.Constant):
                    return str(keyword.value.value)
    raise UsageError(
        f'{path} has no Operator(group="...") that is written out: write it out, as in group="example.com"'
    )


def _parsed(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): restore it and try again") from error
    except (SyntaxError, ValueError) as error:
        where, why = (f"{path}:{error.lineno}", error.msg) if isinstance(error, SyntaxError) else (path, error)
        raise UsageError(f"{where} is not valid Python ({why}): correct it and try again") from error


def _api_version(path: Path, node: ast.ClassDef, group: str) -> ApiVersion | None:
    values: dict[str, Any] = {}
    lines: dict[str, int] = {}
    for statement, name, value in assignments(node):
        annotation = ast.unparse(statement.annotation) if isinstance(statement, ast.AnnAssign) else "ClassVar"
        if name in ("kind", "version") and "ClassVar" not in annotation:
            continue  # a field of a model may have these names, too
        lines[name] = value.lineno
        if isinstance(value, ast.Attribute):  # scope = Scope.CLUSTER
            values[name] = value.attr
        else:
            with suppress(ValueError):  # computed
                values[name] = ast.literal_eval(value)
    if not {"kind", "version"} <= values.keys():
        return None
    return ApiVersion(
        path=path,
        kind=values["kind"],
        plural=values.get("plural") or plural_of(values["kind"]),
        version=values["version"],
        group=values.get("group") or group,
        cluster_scoped=str(values.get("scope", "")).upper() == "CLUSTER",
        hub=values.get("hub") is True,
        storage=values.get("storage") is True,
        short_names=tuple(values.get("short_names", ())),
        lines=lines,
    )


def assignments(node: ast.ClassDef) -> Iterator[tuple[ast.stmt, str, ast.expr]]:
    """The lines of a class that give an attribute a value."""
    for statement in node.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield statement, name, value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield statement, name, value
