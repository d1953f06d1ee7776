"""Another version: copies the hub's module and sample for a new version.

You need it when a kind gets a further version: fields, columns and rules of the hub are copied, so that the API server
converts between the two by itself until their fields differ.
You do not need it for the first version of a kind, which is made from a template.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from importlib.resources import files
from itertools import accumulate
from pathlib import Path
from textwrap import indent
from typing import Final, NamedTuple

from bonny.errors import UsageError

from ..project import Project
from .survey import ApiVersion, api_versions, assignments

# A successor is not deprecated because its predecessor is.
NOT_COPIED: Final = ("deprecated", "deprecation_warning")
# The name in the metadata of an object, as the generators write it.
NAME: Final = re.compile(r"^(metadata:\n(?: .*\n)*?  name: )([a-z0-9.-]+)$", re.MULTILINE)


class Edit(NamedTuple):
    """Bytes of the source to replace."""

    start: int
    end: int
    text: str


def hub_of(project: Project, versions: Sequence[ApiVersion]) -> ApiVersion:
    """The hub among the versions of a kind.

    Raises: `UsageError` when none is, or when its module is not one that can be copied.
    """
    hub = next((version for version in versions if version.hub), None)
    if hub is None:
        names = ", ".join(version.version for version in versions)
        raise UsageError(f"no version of {versions[0].kind} has hub = True: set it on one of {names}")
    neighbours = [version for version in api_versions(project) if version.path == hub.path]
    if len(neighbours) > 1 or project.root / hub.path.parent.parent != project.source / "api":
        raise UsageError(
            f"cannot copy {hub.kind} {hub.version}: {hub.path} has other classes, or is not a module "
            f"api/VERSION/NAME.py: move it to api/{hub.version}/{hub.kind.lower()}.py"
        )
    if missing := [name for name in ("hub", "storage") if name not in hub.lines]:
        raise UsageError(
            f"{hub.kind} {hub.version} ({hub.path}) does not set {missing[0]}: add the line {missing[0]} = False"
        )
    return hub


def copied_sample(path: Path, hub: ApiVersion, version: str) -> str:
    """The hub's sample under another version and name: applied to one cluster, the two are two objects.

    Raises: `UsageError` when there is none.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        text = ""
    given = f"{hub.group}/{hub.version}"
    copied, objects = re.subn(rf"(?<![\w.-]){re.escape(given)}\b", f"{hub.group}/{version}", text)
    if not objects:
        raise UsageError(
            f"{path} has no object of {given}, and the sample of {version} would be made from it: write one there"
        )
    return NAME.sub(lambda match: f"{match[1]}{match[2].removesuffix(f'-{hub.version}')}-{version}", copied)


def copied_module(project: Project, hub: ApiVersion, version: str) -> str:
    """The source of the hub's module as that of `version`: neither hub nor stored, with functions for conversion."""
    module = _Module((project.root / hub.path).read_text(encoding="utf-8"))
    classes = [node for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)]
    declared = next(node for node in classes if hub.lines["hub"] in {value.lineno for *_, value in assignments(node)})
    edits = [*_elsewhere(module, hub, version), *_attributes(module, declared, version)]
    edits += _conversions(module, declared)
    source = module.source
    # From the end, so that what is replaced does not move what comes before it.
    for edit in sorted(edits, reverse=True):
        source = source[: edit.start] + edit.text.encode() + source[edit.end :]
    return source.decode()


class _Module:
    """A source, and where in its bytes the parts of its tree are."""

    def __init__(self, text: str) -> None:
        self.source = text.encode()
        self.tree = ast.parse(self.source)
        self.starts = [0, *accumulate(map(len, self.source.splitlines(keepends=True)))]
        """Where each line begins."""

    def span(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None  # noqa: S101  parsed nodes have an end
        assert node.end_col_offset is not None  # noqa: S101
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[node.end_lineno - 1] + node.end_col_offset

    def replaced(self, node: ast.stmt, pattern: str, text: str) -> Edit:
        start, end = self.span(node)
        return Edit(start, end, re.sub(pattern, text, self.source[start:end].decode()))


def _elsewhere(module: _Module, hub: ApiVersion, version: str) -> Iterator[Edit]:
    """The version in the first line, and imports of modules beside the hub, which stay where they are."""
    if ast.get_docstring(module.tree) is not None:
        yield module.replaced(module.tree.body[0], rf"\b{hub.version}\b", version)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            way = f"from ..{hub.path.parent.name}{'.' if node.module else ' '}"
            yield module.replaced(node, r"^from\s+\.\s*", way)


def _attributes(module: _Module, declared: ast.ClassDef, version: str) -> Iterator[Edit]:
    values = {"version": f'"{version}"', "hub": "False", "storage": "False"}
    for statement, name, value in assignments(declared):
        if name in values:
            yield Edit(*module.span(value), values[name])
        elif name in NOT_COPIED:
            yield Edit(*module.span(statement), "")


def _conversions(module: _Module, declared: ast.ClassDef) -> Iterator[Edit]:
    """The functions at the end of the class, and what they import; none where there are some, from an earlier life."""
    if any(isinstance(node, ast.FunctionDef) and node.name in ("to_hub", "from_hub") for node in declared.body):
        return
    end = module.span(declared)[1]
    functions = files("bonny_dev").joinpath("scaffold", "conversions.py.j2").read_text(encoding="utf-8")
    yield Edit(end, end, "\n\n" + indent(functions, " " * declared.body[0].col_offset).rstrip())
    imports = [node for node in module.tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    if "Resource" not in {alias.asname or alias.name for node in imports for alias in node.names}:
        first = next(node for node in imports if getattr(node, "module", "") != "__future__")
        at = module.span(first)[0]
        yield Edit(at, at, "from bonny import Resource\n")
