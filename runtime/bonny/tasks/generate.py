"""Generate: writes the files of a new kind, or of another version of a kind that exists.

You need it for `invoke gen-controller`. It computes every file first, refuses to touch one that exists, and writes all
or none. Nothing has to be edited by hand afterwards: the operator discovers what lies in its folders.
"""

from __future__ import annotations

import builtins
import importlib.util
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from ..errors import UsageError
from ..naming import check_group, check_kind, check_plural, check_version, snake_case
from ..scaffold.project import Project
from .survey import ApiVersion, api_versions, group_of_operator

__all__ = ["Report", "Request", "generate", "render", "write_new"]

# What generated files import beside the names that `check_kind` refuses: a kind of that name would hide it.
IN_USE = {"Path", "RunningOperator"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a person asked for. `group` empty means the group of the operator, or of the kind's other versions."""

    kind: str
    plural: str
    version: str = "v1"
    cluster_scoped: bool = False
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was done: the files written, relative to the repository, and what to know about them."""

    written: tuple[str, ...]
    notes: tuple[str, ...]


def generate(project: Project, request: Request) -> Report:
    """Write the files for `request` into `project`.

    Guarantees: all files are written or none; a file that exists is never changed.
    Raises: `UsageError` when the names cannot be used, or when the kind or a file exists.
    """
    _check_names(request)
    operator_group = group_of_operator(project)
    existing = api_versions(project)
    siblings = [version for version in existing if version.kind == request.kind]
    group = request.group or (siblings[0].group if siblings else None) or operator_group
    _check_against(project, existing, request, group=group, operator_group=operator_group)
    module = snake_case(request.kind)
    values = {
        "kind": request.kind,
        "plural": request.plural,
        "version": request.version,
        "group": group,
        "own_group": group if group != operator_group else "",
        "cluster_scoped": siblings[0].cluster_scoped if siblings else request.cluster_scoped,
        "first": not siblings,
        "package": project.package,
        "module": module,
        "label": request.kind.lower(),
        "hub": next((version.version for version in siblings if version.hub), ""),
    }
    texts = {path: render(name, values, path) for path, name in _targets(project, request, module, first=not siblings)}
    package = project.source / "api" / request.version / "__init__.py"
    if not package.exists():
        texts[package] = f'"""API version {request.version}: one module a kind."""\n'
    written = write_new(project, texts)
    return Report(written=written, notes=tuple(_notes(project, request, siblings, module)))


def _check_names(request: Request) -> None:
    check_kind(request.kind)
    check_plural(request.plural)
    check_version(request.version)
    if request.group:
        check_group(request.group)
    if request.kind in IN_USE or hasattr(builtins, request.kind):
        raise UsageError(
            f"{request.kind!r} cannot be a kind here: Python or the generated files use this name themselves; "
            f"use for example My{request.kind}"
        )


def _check_against(
    project: Project, existing: Iterable[ApiVersion], request: Request, *, group: str, operator_group: str
) -> None:
    """Refuse what would clash with the kinds that the repository has."""
    for other in existing:
        others_group = other.group or operator_group
        where = other.path.relative_to(project.root)
        if other.kind != request.kind:
            shared = sorted(_served_names(other.kind, other.plural) & _served_names(request.kind, request.plural))
            if shared and others_group == group:
                raise UsageError(
                    f"{request.kind} and {other.kind} ({where}) would share the name {shared[-1]} in {group}: "
                    "choose another kind or plural"
                )
            continue
        if other.plural != request.plural:
            raise UsageError(
                f"{other.kind} has the plural {other.plural} ({where}) in all its versions: "
                f"say `gen-controller {other.kind} {other.plural}`, or choose another kind"
            )
        if others_group != group:
            raise UsageError(
                f"{other.kind} is in the group {others_group} ({where}): leave out --group, or choose another kind"
            )
        if request.cluster_scoped and not other.cluster_scoped:
            raise UsageError(
                f"{other.kind} is namespaced ({where}) and cannot be cluster-scoped in another version: "
                "leave out --cluster-scoped, or choose another kind"
            )
        if other.version == request.version:
            raise UsageError(
                f"{other.kind} {other.version} exists already ({where}), so nothing was written: "
                "edit that file, or choose another --version"
            )


def _served_names(kind: str, plural: str) -> set[str]:
    """The names that are taken in a group when its API server serves the kind."""
    return {kind, f"{kind}List", kind.lower(), plural}


def _targets(project: Project, request: Request, module: str, *, first: bool) -> Iterator[tuple[Path, str]]:
    """Every file to write, with the template that it is made from."""
    label = request.kind.lower()
    tests = project.root / "tests"
    yield project.source / "api" / request.version / f"{module}.py", "api.py.j2"
    yield project.root / "samples" / f"{label}-{request.version}.yaml", "sample.yaml.j2"
    if first:
        yield project.source / "controllers" / f"{module}.py", "controller.py.j2"
        yield tests / "unit" / f"test_{module}.py", "test_unit.py.j2"
        yield tests / "integration" / f"test_{module}.py", "test_integration.py.j2"
    else:
        yield tests / "integration" / f"test_{module}_{request.version}.py", "test_version.py.j2"


def render(name: str, values: Mapping[str, Any], path: Path) -> str:
    """The text of `path`, made from the template `name`."""
    source = files("bonny").joinpath("scaffold", name).read_text(encoding="utf-8")
    environment = Environment(  # noqa: S701  (Python and YAML, not HTML)
        undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True, lstrip_blocks=True
    )
    text = environment.from_string(source).render(values)
    return _formatted(text, path) if path.suffix == ".py" else text


def _formatted(text: str, path: Path) -> str:
    """`text` with lines broken as the repository's formatter wants it; unchanged where ruff is not installed."""
    if importlib.util.find_spec("ruff") is None:
        return text
    command = [sys.executable, "-m", "ruff", "format", "--quiet", "--stdin-filename", str(path), "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, encoding="utf-8", check=False)
    return done.stdout if done.returncode == 0 else text


def write_new(project: Project, texts: Mapping[Path, str]) -> tuple[str, ...]:
    """Write files that do not exist yet, all or none; returns their names, relative to the repository.

    Raises: `UsageError` when one exists, or cannot be written.
    """
    taken = [path for path in texts if path.exists()]
    if taken:
        names = ", ".join(str(path.relative_to(project.root)) for path in taken)
        raise UsageError(f"{names} exists already, so nothing was written: move it away, or choose another name")
    _write_all(texts)
    return tuple(sorted(str(path.relative_to(project.root)) for path in texts))


def _write_all(texts: Mapping[Path, str]) -> None:
    """Write every file, or none: what was written is removed again when one of them fails."""
    made: list[Path] = []
    try:
        for path, text in texts.items():
            for folder in reversed([path.parent, *path.parent.parents]):
                if not folder.exists():
                    folder.mkdir()
                    made.append(folder)
            with path.open("x", encoding="utf-8", newline="\n") as file:  # x: never over a file that appeared meanwhile
                made.append(path)
                file.write(text)
    except BaseException as error:
        for path in reversed(made):
            if path.is_dir():
                path.rmdir()
            else:
                path.unlink()
        if isinstance(error, OSError):
            raise UsageError(
                f"{error.filename} cannot be written ({error.strerror}), so nothing was: mend that and try again"
            ) from error
        raise


def _notes(project: Project, request: Request, siblings: Iterable[ApiVersion], module: str) -> Iterator[str]:
    """Which version is the hub and stored, and the lines to change so that the new one takes its place."""
    hub = next((version for version in siblings if version.hub), None)
    stored = next((version for version in siblings if version.storage), None)
    if hub is None or stored is None:
        return
    yield (
        f"{request.kind} {request.version} is served. {hub.version} stays the hub, which the controller works with; "
        f"{stored.version} stays the version that is stored."
    )
    yield f"To put {request.version} in its place, change these lines:"
    new = {found.version: found for found in api_versions(project) if found.kind == request.kind}[request.version]
    for version, name, value in (
        (hub, "hub", False),
        (stored, "storage", False),
        (new, "hub", True),
        (new, "storage", True),
    ):
        yield f"  {version.path.relative_to(project.root)}:{version.lines[name]}: {name} = {value}"
    wanted = f"api.{hub.version}.{module} import"
    users = (project.source / "controllers" / f"{module}.py", project.root / "tests" / "unit" / f"test_{module}.py")
    for path in users:
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        for number, line in enumerate(lines, start=1):
            if wanted in line:
                changed = line.strip().replace(f"api.{hub.version}.", f"api.{request.version}.")
                yield f"  {path.relative_to(project.root)}:{number}: {changed}"
