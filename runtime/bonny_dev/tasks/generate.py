"""Generate: plans the files of a new kind, or of another version of a kind that exists.

You need it for `invoke gen-controller`. No other file has to be edited: the operator discovers the modules in its
folders.
Elsewhere: the module of another version (`another_version`), controllers of existing kinds, tasks, reconcilers and
schedulers (`parts`), how files are written (`plan`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from bonny.errors import UsageError
from bonny.naming import check_group, check_kind, check_plural, check_version

from ..naming import snake_case
from ..project import Project
from .another_version import copied_module, copied_sample, hub_of
from .plan import Plan, check_finalizes, check_free, formatted, rendered
from .survey import ApiVersion, api_versions, api_versions_in, group_of_operator

FIRST_VERSION: Final = "v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKind:
    """The options of gen-controller. An empty `group` is the group of the operator, or of the kind's other versions; an
    empty `version` is v1, of a kind that is new."""

    kind: str
    plural: str
    version: str = ""
    cluster_scoped: bool = False
    short_names: tuple[str, ...] = ()
    group: str = ""
    finalizer: bool = False
    controller: bool = True
    bare: bool = False
    """Without the example, which publishes a field in a ConfigMap."""


def plan_kind(project: Project, request: NewKind) -> Plan:
    """The files for `request`: all of a kind, or what a further version of it adds.

    Raises: `UsageError` when the names cannot be used, or the kind or version exists and says something else.
    """
    operator_group = group_of_operator(project)
    existing = api_versions(project)
    siblings = [version for version in existing if version.kind == request.kind]
    request = replace(request, version=request.version or _first_version(project, siblings))
    _check_names(request)
    # All versions of a kind agree.
    like = siblings[0] if siblings else request
    group = request.group or like.group or operator_group
    for other in existing:
        if other.kind == request.kind:
            _check_sibling(project, other, request, group=group, others_group=other.group or operator_group)
        elif (other.group or operator_group) == group:
            _check_neighbour(project, other, request, group=group)
    same = next((version for version in siblings if version.version == request.version), None)
    others = [version for version in siblings if version is not same]
    values = {
        **asdict(request),
        "group": group,
        "own_group": group if group != operator_group else "",
        "cluster_scoped": like.cluster_scoped,
        "short_names": like.short_names,
        "bare": request.bare or not request.controller,
        "package": project.package,
        "module": snake_case(request.kind),
        "label": request.kind.lower(),
    }
    # A version that is the hub was here first, whatever came after it.
    if not others or (same is not None and same.hub):
        plan = _first(project, request, values)
    else:
        plan = _further(project, request, others, values)
    if same is not None and plan.edited():
        raise UsageError(
            f"{request.kind} {request.version} exists already ({same.path.relative_to(project.root)}) and is not as it "
            "was generated, so nothing was written: edit that file, or choose another --version"
        )
    return plan


def _first_version(project: Project, siblings: Sequence[ApiVersion]) -> str:
    """The version of a new kind. Raises: `UsageError` when the kind exists, and only in other versions."""
    names = [version.version for version in siblings]
    if siblings and FIRST_VERSION not in names:
        kind, where = siblings[0].kind, siblings[0].path.relative_to(project.root)
        raise UsageError(
            f"{kind} exists already, in version {', '.join(names)}: edit {where}, or add a version of it with --version"
        )
    return FIRST_VERSION


def _check_names(request: NewKind) -> None:
    check_kind(request.kind)
    check_plural(request.plural)
    check_version(request.version)
    if request.finalizer:
        check_finalizes(request.kind)
    for name in request.short_names:
        check_plural(name, "short name", example="ct")
        if name in (request.plural, request.kind.lower()) or request.short_names.count(name) > 1:
            raise UsageError(f"the short name {name} is a name of {request.kind} already: leave it out")
    if request.group:
        check_group(request.group)


def _check_neighbour(project: Project, other: ApiVersion, request: NewKind, *, group: str) -> None:
    """Refuse a name that another kind of the group has."""
    if shared := sorted(_served_names(other) & _served_names(request)):
        raise UsageError(
            f"{request.kind} and {other.kind} ({other.path.relative_to(project.root)}) would share the name "
            f"{shared[-1]} in {group}: choose another kind, plural or short name"
        )


def _check_sibling(project: Project, other: ApiVersion, request: NewKind, *, group: str, others_group: str) -> None:
    """Refuse options that differ from another version of the kind, where all versions must agree."""
    for option, fits, value in (
        ("plural", request.plural == other.plural, other.plural),
        ("group", group == others_group, others_group),
        ("scope", other.cluster_scoped or not request.cluster_scoped, "Namespaced"),
        ("short names", set(request.short_names) in (set(), set(other.short_names)), ", ".join(other.short_names)),
    ):
        if not fits:
            raise UsageError(
                f"{other.kind} has the {option} {value or 'none'} in all its versions "
                f"({other.path.relative_to(project.root)}): give the same, or choose another kind"
            )


def _served_names(of: ApiVersion | NewKind) -> set[str]:
    """The names that are taken in a group when its API server serves the kind."""
    return {of.kind, f"{of.kind}List", of.kind.lower(), of.plural, *of.short_names}


def _first(project: Project, request: NewKind, values: Mapping[str, Any]) -> Plan:
    """API, sample and tests of a kind, and its controller if it is wanted."""
    module, tests = values["module"], project.root / "tests"
    api = project.source / "api" / request.version / f"{module}.py"
    controller = project.source / "controllers" / f"{module}.py"
    templates = {api: "api.py.j2", _sample(project, values, request.version): "sample.yaml.j2"}
    unit, integration = (tests / level / f"test_{module}.py" for level in ("unit", "integration"))
    if request.controller:
        suffix = "_bare" if request.bare else ""
        templates[controller] = f"controller{suffix}.py.j2"
        templates |= {unit: f"test_unit{suffix}.py.j2", integration: f"test_integration{suffix}.py.j2"}
    else:
        templates[unit] = "test_sample.py.j2"
    texts = rendered(templates, values)
    check_free(request.kind, "a kind", texts)
    handler = f"\n  and the handler in {controller.relative_to(project.root)}" if request.controller else ""
    note = f"Next: edit the fields in {api.relative_to(project.root)}{handler}; `invoke test` runs their tests."
    return Plan(root=project.root, texts={**package_of_version(project, request.version), **texts}, notes=(note,))


def _further(project: Project, request: NewKind, others: Sequence[ApiVersion], values: Mapping[str, Any]) -> Plan:
    """API, sample and tests of a version beside the hub. The controller stays what it is."""
    if request.finalizer:
        raise UsageError(
            f"{request.kind} has its controller already: write `async def finalize` in it, and leave out --finalizer"
        )
    hub = hub_of(project, others)
    module, version = values["module"], request.version
    tests, name = project.root / "tests", f"test_{values['module']}_{version}.py"
    api = project.source / "api" / version / f"{module}.py"
    values = {**values, "hub": hub.version, "hub_module": hub.path.stem, "hub_package": hub.path.parent.name}
    templates = {tests / "unit" / name: "test_conversion.py.j2"}
    if request.controller:
        templates[tests / "integration" / name] = "test_version.py.j2"
    texts = rendered(templates, values)
    texts[api] = formatted(copied_module(hub, version), api, package=project.package)
    old = _sample(project, values, hub.version)
    texts[_sample(project, values, version)] = copied_sample(old, hub, version, group=values["group"])
    (new,) = api_versions_in(api, ast.parse(texts[api]))
    stored = next((other for other in others if other.storage), hub)
    notes = tuple(_notes(project, hub, new, stored, module=module, group=values["group"]))
    return Plan(root=project.root, texts={**package_of_version(project, version), **texts}, notes=notes)


def _sample(project: Project, values: Mapping[str, Any], version: str) -> Path:
    return project.root / "samples" / f"{values['label']}-{version}.yaml"


def package_of_version(project: Project, version: str) -> dict[Path, str]:
    """The package of an API version, if there is none."""
    path = project.source / "api" / version / "__init__.py"
    return {} if path.exists() else {path: f'"""API version {version}: one module a kind."""\n'}


def _notes(
    project: Project, hub: ApiVersion, new: ApiVersion, stored: ApiVersion, *, module: str, group: str
) -> Iterator[str]:
    """Which version is the hub and stored, and the lines to change so that the new one takes its place."""
    yield (
        f"{new.kind} {new.version} is served. {hub.version} stays the hub, which the controller works with; "
        f"{stored.version} stays the version that is stored. To change its fields, edit them, to_hub and from_hub in "
        f"{new.path.relative_to(project.root)}, and set served = False there for one release."
    )
    yield f"To put {new.version} in its place, in a release after it was served, change these lines:"
    for version, name, value in (
        (stored, "storage", False),
        (hub, "hub", False),
        (new, "storage", True),
        (new, "hub", True),
    ):
        yield f"  {version.path.relative_to(project.root)}:{version.lines[name]}: {name} = {value}"
    old = (f"api.{hub.path.parent.name}.{hub.path.stem} import", f'"{group}/{hub.version}"')
    become = (f"api.{new.version}.{module} import", f'"{group}/{new.version}"')
    users = (project.source / "controllers" / f"{module}.py", project.root / "tests" / "unit" / f"test_{module}.py")
    for path in users:
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        for number, line in enumerate(lines, start=1):
            changed = line.strip().replace(old[0], become[0]).replace(old[1], become[1])
            if changed != line.strip():
                yield f"  {path.relative_to(project.root)}:{number}: {changed}"
