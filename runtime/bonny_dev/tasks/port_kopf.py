"""Port of kopf: a controller for each kind whose handlers were read from a module of kopf.

You need it for `invoke migrate-from kopf --code`. The classes of the kinds are there already: `invoke gen-api
--from-crd` writes them. Bodies are not translated: a handler of kopf sends requests, and `reconcile` registers objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..project import Project
from ..ways_in.kopf_code import FINALIZE, RECONCILE, Handler, Module
from .plan import CONTROLLER, NAME, Plan, rendered
from .survey import ApiVersion, api_versions


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """The plan of the controllers, and the kinds for which the repository has no class."""

    plan: Plan
    unknown: tuple[str, ...]


def listing(module: Module) -> Iterator[str]:
    """A line for each handler, and after it one for each other use of kopf, with its counterpart."""
    lines = [(use.line, 1, f"{use.name} -> {use.counterpart}") for use in module.uses]
    for each in module.handlers:
        kind = f" of {each.named}" if each.named else ""
        lines.append((each.line, 0, f"{each.decorator}{kind}, {each.function} -> {each.counterpart}"))
    yield from (f"{module.path}:{line}: {text}" for line, _, text in sorted(lines))


def plan_controllers(project: Project, module: Module) -> Port:
    """A controller for each kind that has a class in the repository, and handlers that become methods.

    Raises: `UsageError` for a name that cannot be in code.
    """
    existing = sorted(api_versions(project), key=lambda version: not version.hub)
    ported: dict[str, tuple[ApiVersion, list[Handler]]] = {}
    unknown = []
    for each in module.handlers:
        if each.method and each.resource:
            version = next((one for one in existing if _is_named(one, each.group, each.resource)), None)
            if version is None:
                unknown.append(each.named)
            else:
                ported.setdefault(version.kind, (version, []))[1].append(each)
    texts: dict[str, str] = {}
    for version, handlers in ported.values():
        texts |= _controller(project, module, version, handlers)
    return Port(plan=Plan(root=project.root, texts=texts), unknown=tuple(dict.fromkeys(unknown)))


def _is_named(version: ApiVersion, group: str, resource: str) -> bool:
    """Whether kopf means that class by the name: a plural, a singular, a kind or a short name, in any group or one."""
    names = {version.plural, version.kind, version.kind.lower(), *version.short_names}
    return resource in names and group in ("", version.group)


def _controller(project: Project, module: Module, version: ApiVersion, handlers: Sequence[Handler]) -> dict[str, str]:
    def of(method: str) -> list[Handler]:
        return [each for each in handlers if each.method == method]

    def names(method: str) -> list[str]:
        return list(dict.fromkeys(each.function for each in of(method)))

    def is_async(method: str) -> bool:
        return any(each.is_async for each in of(method))

    intervals = [each.interval for each in handlers if each.decorator == "timer" and each.interval]
    values = {
        "kind": version.kind,
        "version": version.path.parent.name,
        "module": version.path.stem,
        "package": project.package,
        "source": module.path.name if NAME.fullmatch(module.path.name) else "kopf",
        "seconds": min(intervals, default=0.0),
        "reconciles": names(RECONCILE),
        "finalizes": names(FINALIZE),
        # `def` runs in a thread, as in kopf, so its clients may block.
        "reconcile_is_async": is_async(RECONCILE),
        "finalize_is_async": is_async(FINALIZE),
    }
    return rendered(project, {CONTROLLER: "controller_from_kopf.py.j2"}, values)
