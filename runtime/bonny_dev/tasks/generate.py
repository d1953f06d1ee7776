"""Generate: plans the files of a new kind, or of another version of a kind that exists.

You need it for `invoke gen-controller`. No other file has to be edited: the operator discovers the modules in its
folders.
Elsewhere: the module of another version (`another_version`), controllers of existing kinds, tasks, reconcilers and
schedulers (`generators`), how files are written (`plan`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from bonny.errors import UsageError
from bonny.kinds import builtin_kinds

from ..naming import check_class, check_group, check_plural, check_version, snake_case
from ..project import Project
from .another_version import copied_module, copied_sample, hub_of
from .options import NewKind
from .plan import API, CONTROLLER, SAMPLE, Plan, check_finalizes, check_free, formatted, rendered
from .survey import ApiVersion, api_versions, api_versions_in, group_of_operator

FIRST_VERSION: Final = "v1"


def plan_kind(project: Project, request: NewKind) -> Plan:
    """The files for `request`: all of a kind, or those of a further version.

    Raises: `UsageError` when the names cannot be used, or the kind or version exists and differs.
    """
    operator_group = group_of_operator(project)
    existing = api_versions(project)
    siblings = [version for version in existing if version.kind == request.kind]
    request = replace(request, version=request.version or _first_version(siblings))
    _check_names(request)
    # All versions of a kind agree.
    like = siblings[0] if siblings else request
    group = request.group or like.group or operator_group
    for other in existing:
        if other.kind == request.kind:
            _check_sibling(other, request, group=group)
        elif other.group == group:
            _check_neighbour(other, request)
    same = next((version for version in siblings if version.version == request.version), None)
    others = [version for version in siblings if version is not same]
    values = {
        **{name: value for name, value in vars(request).items() if name != "short_name"},  # as it was typed
        "group": group,
        "own_group": group if group != operator_group else "",
        "cluster_scoped": like.cluster_scoped,
        "short_names": like.short_names,
        "bare": request.bare or request.no_controller,
        "package": project.package,
        "module": snake_case(request.kind),
        "label": request.kind.lower(),
    }
    # A version that is the hub was here first.
    if not others or (same is not None and same.hub):
        plan = _first(project, request, values)
    else:
        plan = _further(project, request, others, values)
    if same is not None and plan.edited():
        raise UsageError(
            f"{request.kind} {request.version} exists already ({same.path}) and is not as it "
            "was generated, so nothing was written: edit that file, or choose another --version"
        )
    return plan


def _first_version(siblings: Sequence[ApiVersion]) -> str:
    """The version of a new kind. Raises: `UsageError` when the kind exists, and only in other versions."""
    names = [version.version for version in siblings]
    if siblings and FIRST_VERSION not in names:
        raise UsageError(
            f"{siblings[0].kind} exists already, in version {', '.join(names)}: edit {siblings[0].path}, or add a "
            "version of it with --version"
        )
    return FIRST_VERSION


def _check_names(request: NewKind) -> None:
    check_class(request.kind)
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


def _check_neighbour(other: ApiVersion, request: NewKind) -> None:
    """Refuse a name that another kind of the group has."""
    if shared := sorted(_served_names(other) & _served_names(request)):
        raise UsageError(
            f"{request.kind} and {other.kind} ({other.path}) would share the name "
            f"{shared[-1]} in {other.group}: choose another kind, plural or short name"
        )


def _check_sibling(other: ApiVersion, request: NewKind, *, group: str) -> None:
    """Refuse options that differ from another version of the kind, where all versions must agree."""
    for option, fits, value in (
        ("plural", request.plural == other.plural, other.plural),
        ("group", group == other.group, other.group),
        ("scope", other.cluster_scoped or not request.cluster_scoped, "Namespaced"),
        ("short names", set(request.short_names) in (set(), set(other.short_names)), ", ".join(other.short_names)),
    ):
        if not fits:
            raise UsageError(
                f"{other.kind} has the {option} {value or 'none'} in all its versions "
                f"({other.path}): give the same, or choose another kind"
            )


def _served_names(of: ApiVersion | NewKind) -> set[str]:
    """The names that are taken in a group when its API server serves the kind."""
    return {of.kind, f"{of.kind}List", of.kind.lower(), of.plural, *of.short_names}


def _first(project: Project, request: NewKind, values: Mapping[str, Any]) -> Plan:
    """API, sample and tests of a kind, and its controller if it is wanted."""
    templates = {API: "api.py.j2", SAMPLE: "sample.yaml.j2"}
    if request.no_controller:
        templates["tests/unit/test_{module}.py"] = "test_sample.py.j2"
    else:
        suffix = "_bare" if request.bare else ""
        templates[CONTROLLER] = f"controller{suffix}.py.j2"
        templates["tests/unit/test_{module}.py"] = f"test_unit{suffix}.py.j2"
        templates["tests/integration/test_{module}.py"] = f"test_integration{suffix}.py.j2"
    texts = rendered(project, templates, values)
    check_free(request.kind, "a kind", texts)
    handler = "" if request.no_controller else f"\n  and the handler in {CONTROLLER}"
    note = f"Next: edit the fields in {API}{handler}; `invoke test` runs their tests.".format_map(values)
    known = [f"{version}/{kind}" for version, kind in builtin_kinds() if kind == request.kind]
    meant = "Kubernetes has a kind of that name: if you mean it, remove these files and give --for {}."
    also = [meant.format(each) for each in known[:1]]
    texts = {**package_of_version(project, request.version), **texts}
    return Plan(root=project.root, texts=texts, notes=(note, *also))


def _further(project: Project, request: NewKind, others: Sequence[ApiVersion], values: Mapping[str, Any]) -> Plan:
    """API, sample and tests of a version beside the hub. The controller stays as it is."""
    if request.finalizer:
        raise UsageError(
            f"{request.kind} has its controller already: write `async def finalize` in it, and leave out --finalizer"
        )
    hub = hub_of(project, others)
    version, api = request.version, API.format_map(values)
    values = {**values, "hub": hub.version, "hub_module": hub.path.stem, "hub_package": hub.path.parent.name}
    templates = {"tests/unit/test_{module}_{version}.py": "test_conversion.py.j2"}
    if not request.no_controller:
        templates["tests/integration/test_{module}_{version}.py"] = "test_version.py.j2"
    texts = rendered(project, templates, values)
    texts[api] = formatted(project, copied_module(project, hub, version), api)
    sample = project.root / SAMPLE.format_map({**values, "version": hub.version})
    texts[SAMPLE.format_map(values)] = copied_sample(sample, hub, version)
    (new,) = api_versions_in(Path(api), ast.parse(texts[api]), hub.group)
    stored = next((other for other in others if other.storage), hub)
    notes = tuple(_notes(project, hub, new, stored))
    return Plan(root=project.root, texts={**package_of_version(project, version), **texts}, notes=notes)


def package_of_version(project: Project, version: str) -> dict[str, str]:
    """The package of an API version, if there is none."""
    name = f"src/{project.package}/api/{version}/__init__.py"
    return {} if (project.root / name).exists() else {name: f'"""API version {version}: one module a kind."""\n'}


def _notes(project: Project, hub: ApiVersion, new: ApiVersion, stored: ApiVersion) -> Iterator[str]:
    """Which version is the hub and stored, and the lines to change so that the new one takes its place."""
    yield (
        f"{new.kind} {new.version} is served. {hub.version} stays the hub, which the controller works with; "
        f"{stored.version} stays the version that is stored. To change its fields, edit them, to_hub and from_hub in "
        f"{new.path}, and set served = False there for one release."
    )
    yield f"To put {new.version} in its place, in a release after it was served, change these lines:"
    attributes = ((stored, "storage", False), (hub, "hub", False), (new, "storage", True), (new, "hub", True))
    for version, name, value in attributes:
        yield f"  {version.path}:{version.lines[name]}: {name} = {value}"
    imported, served, sample = zip(_references(hub), _references(new), strict=True)
    controllers, tests = project.source / "controllers", project.root / "tests"
    module = f"{new.path.stem}.py"
    users: dict[Path, tuple[tuple[str, str], ...]] = {
        controllers / module: (imported, served),
        tests / "unit" / f"test_{module}": (imported, served),
        tests / "integration" / f"test_{module}": (sample,),
    }
    for path in sorted(controllers.rglob("*.py")):
        # Webhooks, too, review objects in the version that they import.
        if path not in users and imported[0] in path.read_text(encoding="utf-8"):
            for user in (path, *sorted(tests.glob(f"*/test_{path.name}"))):
                users.setdefault(user, (imported, sample))
    for path, changes in users.items():
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        for number, line in enumerate(lines, start=1):
            changed = line.strip()
            for before, after in changes:
                changed = changed.replace(before, after)
            if changed != line.strip():
                yield f"  {path.relative_to(project.root)}:{number}: {changed}"


def _references(to: ApiVersion) -> tuple[str, str, str]:
    """How code refers to a version: the import, the API version of its objects, and the name of the sample."""
    return (
        f"api.{to.path.parent.name}.{to.path.stem} import",
        f'"{to.group}/{to.version}"',
        f"{to.kind.lower()}-{to.version}.yaml",
    )
