"""Imports: finds packages that the operator imports and that its image would lack.

The image has the dependencies in pyproject.toml and the extras in `[tool.bonny]`; the environment of a developer has
more. Of the operator's modules only imports that always run count: at the top, not in `try`, `if` or a function. Of the
runtime's own there is one that depends on the operator: the leader makes certificates with `cryptography`.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from bonny.operator import Operator

from ..project import Project
from ..uses import has_webhooks
from .pyproject import PROJECT, normal_name


def lacking(project: Project) -> list[str]:
    """A sentence for each such package, which names the import and the requirement to add to pyproject.toml.

    A package that comes with a declared one is not lacking; neither is one that is not installed here, which other
    checks report. While a declared one is not installed, nothing is known.
    """
    try:
        optional, present = _in_the_image(project)
    except metadata.PackageNotFoundError:
        return []
    installed = metadata.packages_distributions()
    own = {path.stem for folder in ("src", "vendor") for path in (project.root / folder).glob("*")}
    sentences = {}
    for path in sorted((project.root / "src").rglob("*.py")):
        for module in _imported(path):
            packages = {normal_name(each) for each in installed.get(module, ())}
            if packages and not packages & present and module not in own | sys.stdlib_module_names:
                where = path.relative_to(project.root)
                sentences[module] = f"{where} imports {module}, which the image lacks: {_advice(packages, optional)}"
    return list(sentences.values())


def lacking_for_certificates(project: Project, operator: Operator) -> Iterator[str]:
    """A sentence if the operator makes certificates and the image lacks a package for it; else none, as `lacking`."""
    serves = has_webhooks(operator) or operator.deploy.secure_metrics
    with suppress(metadata.PackageNotFoundError):
        optional, present = _in_the_image(project)
        if serves and operator.deploy.certificates == "own" and "cryptography" not in present:
            yield (
                "the certificates of webhooks and of secure metrics are made with cryptography, which the image lacks: "
                f'{_advice({"cryptography"}, optional)}, or write Deploy(certificates="cert-manager")'
            )


def _in_the_image(project: Project) -> tuple[dict[str, list[str]], set[str]]:
    """The requirements of each extra, and the names of all packages of the image. Raises: `PackageNotFoundError`."""
    table = tomllib.loads((project.root / PROJECT).read_text("utf-8"))
    optional: dict[str, list[str]] = table["project"].get("optional-dependencies", {})
    declared = list(table["project"].get("dependencies", ()))
    declared += [each for name in project.extras for each in optional.get(name, ())]
    return optional, _with_their_own(declared)


def _advice(packages: set[str], optional: dict[str, list[str]]) -> str:
    extras = [name for name in optional if name != "dev" and packages & {*map(normal_name, optional[name])}]
    advice = f'"{extras[0]}" to extras in [tool.bonny]' if extras else f'"{min(packages)}" to dependencies'
    return f"add {advice} in pyproject.toml"


def _imported(path: Path) -> Iterator[str]:
    try:
        body = ast.parse(path.read_bytes()).body
    except (SyntaxError, ValueError):  # ruff and mypy report it
        return
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _with_their_own(requirements: Iterable[str]) -> set[str]:
    """The names of `requirements` and of all that they require. Raises: `PackageNotFoundError`."""
    seen, todo = set[tuple[str, bool]](), list(requirements)
    while todo:
        requirement = todo.pop()
        name, has_extras = normal_name(requirement), "[" in requirement.partition(";")[0]
        if (name, has_extras) in seen:
            continue
        seen.add((name, has_extras))
        try:
            inner = metadata.requires(name) or ()
        except metadata.PackageNotFoundError:
            if ";" not in requirement:  # without a condition that may not hold here
                raise
            inner = ()
        todo += [each for each in inner if has_extras or not re.search(r"\bextra\s*==", each)]
    return {name for name, _ in seen}
