"""CRD changes: compares definitions and permissions with the last release, as `invoke crd-check` does."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator

from bonny.errors import UsageError
from bonny.operator import Operator
from bonny.resource import Resource

from ..install import CRD
from ..manifest import bundle
from ..project import Project
from ..release import definitions, permissions
from ..release.definitions import Finding
from ..release.source import line_of
from ..release.tags import IMAGE, last_tag, manifest_of
from .pyproject import PROJECT

ACCEPTED = "accepted-breaks"


def check(project: Project, tag: str = "") -> bool:
    """Print what changed since `tag` (default: the last one), and return whether nothing breaks that is not accepted.

    Raises: `UsageError` when there is no such tag, its manifest cannot be made, or `accepted-breaks` is not a list.
    """
    accepted = _accepted(project)
    if not tag and not (tag := last_tag(project.root)):
        print("skipped: no tag of an earlier release is in this repository, so there is nothing to compare with")
        return True
    before = manifest_of(project.root, tag)
    operator = project.load_operator()
    after = bundle.documents(operator, image=IMAGE)
    changes = definitions.compare(_crds(before), _crds(after))
    found = sorted(changes, key=lambda each: (not each.change.breaks, each.name))  # first what breaks
    breaking = [each for each in found if each.change.breaks and each.name not in accepted]
    print(f"compared with {tag}:")
    print(*_shown(project, operator, found, accepted), *_granted(before, after), sep="\n")
    if breaking:
        print(
            f"{len(breaking)} of these break stored objects or clients: keep the old form, add a version, or accept "
            f'it by name in [tool.bonny] of pyproject.toml: {ACCEPTED} = ["{breaking[0].name}"]'
        )
    return not breaking


def _accepted(project: Project) -> list[str]:
    table = tomllib.loads((project.root / PROJECT).read_text("utf-8"))["tool"]["bonny"]
    accepted = table.get(ACCEPTED, [])
    if not isinstance(accepted, list) or not all(isinstance(each, str) for each in accepted):
        raise UsageError(
            f'{ACCEPTED} in [tool.bonny] of pyproject.toml is not a list of texts: write ["Widget v1 spec.size"]'
        )
    return accepted


def _crds(objects: Iterable[Resource]) -> list[Resource]:
    return [each for each in objects if each["kind"] == CRD.kind]


def _shown(project: Project, operator: Operator, found: list[Finding], accepted: list[str]) -> Iterator[str]:
    """A line for each change."""
    for each in found:
        if not each.change.breaks:
            yield f"  changed: {each}"
        else:
            place = _line(project, operator, each)
            word = "accepted" if each.name in accepted else "breaks"
            yield f"  {word}: {f'{place}: ' if place else ''}{each}"
    if not found:
        yield "  no change of a CRD"
    for name in accepted:
        if name not in {each.name for each in found}:
            yield f"  {ACCEPTED} names {name!r}, and that did not change: remove it from pyproject.toml"


def _line(project: Project, operator: Operator, finding: Finding) -> str:
    versions = [each for each in operator.crds if each.kind == finding.kind]
    versions = [each for each in versions if each.version == finding.version] or versions
    return line_of(versions[0], finding.change.path, project.root) if versions else ""


def _granted(before: list[Resource], after: list[Resource]) -> Iterator[str]:
    new, gone = permissions.compare(before, after)
    yield from (f"  new permission: {line}" for line in new)
    yield from (f"  permission gone: {line}" for line in gone)
    if not (new or gone):
        yield "  no change of a permission"
