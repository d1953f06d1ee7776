"""Uses: which extras a repository uses; the tools ask before they load one, because it may not be there."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

from bonny.carried import MissingExtra
from bonny.core.selector import hold, requirements_of
from bonny.operator import Operator
from bonny.resource import Resource

from .wheel import listed_extras, sources


def has_webhooks(operator: Operator) -> bool:
    """Whether the API server calls the operator: it reviews writes, or converts between versions of a kind."""
    return bool(operator.converted) or any(part.extra == "webhooks" for part in operator.parts)


def selector_of(operator: Operator) -> str:
    """The labels of the namespaces that it watches; empty if others, or all, are."""
    if isinstance(operator.watch, str | tuple):
        return ""
    from bonny.namespaces import NamespaceSelector  # noqa: PLC0415  its extra may be absent

    return operator.watch.selector if isinstance(operator.watch, NamespaceSelector) else ""


def namespaces_of(operator: Operator) -> list[Resource]:
    """The namespaces that it watches by name, for a sandbox, where they do not exist yet."""
    return [namespace_with(name) for name in operator.watch] if isinstance(operator.watch, tuple) else []


def namespace_with(name: str, labels: Mapping[str, str] = MappingProxyType({})) -> Resource:
    """A Namespace, for an apply."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels)}}


def labels_for(selector: str) -> dict[str, str]:
    """Labels that the selector selects; empty if there are none that are easy to find."""
    requirements = requirements_of(selector)
    chosen = {each.key: each.values[0] for each in requirements if each.operator == "In"}
    labels = {each.key: "true" for each in requirements if each.operator == "Exists"} | chosen
    return labels if hold(requirements, labels) else {}


def imports(folder: Path) -> Iterator[tuple[str, Path]]:
    """Each extra that a module below `folder` imports, and the module."""
    table = listed_extras(sources())
    for path in sorted(folder.rglob("*.py")):
        packages = _packages(path)
        for name, each in table.items():
            if packages & {f"bonny.{part}" for part in each.get("folders", ())[:1]}:
                yield name, path


def absent_import(root: Path) -> MissingExtra | None:
    """The error of a module in src/ or tests/ that imports an extra which the repository at `root` does not carry."""
    vendored = root / "vendor" / "bonny"
    if not vendored.is_dir():  # the template's own repository
        return None
    table = listed_extras(sources())
    for name, path in (each for folder in ("src", "tests") for each in imports(root / folder)):
        if not all((vendored / part).is_dir() for part in table[name]["folders"]):
            return MissingExtra(path.relative_to(root).as_posix(), name)
    return None


def _packages(path: Path) -> set[str]:
    """The packages `bonny.x` that a module imports."""
    names: set[str] = set()
    with suppress(SyntaxError, ValueError):  # ruff and mypy report it
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
    return {".".join(name.split(".")[:2]) for name in names}
