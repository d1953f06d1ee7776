"""Port of a CRD: plans the files of a kind that has a definition: its classes, a sample, a controller and a test.

You need it for `invoke gen-controller --from-crd` and `invoke gen-api --from-crd`. The test compares the classes with
the definition, which is kept in `tests/crds`; when the same definition comes in a newer form, the two are compared and
nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

from bonny.errors import UsageError
from bonny.resource import Resource

from ..from_crd.compare import differences
from ..from_crd.port import Port, beside, port
from ..from_crd.reading import parse_crd
from ..from_crd.sample import sample
from ..naming import snake_case
from ..project import Project
from .generate import package_of_version
from .options import NewKind
from .plan import API, CONTROLLER, SAMPLE, Plan, complaints, formatted, rendered
from .survey import api_versions, group_of_operator


def plan_port(project: Project, crd: Resource, text: str, new: NewKind) -> Plan:
    """The files for the definition `crd`, whose YAML is `text`. An empty `version` of `new` is all of them.

    Raises: `UsageError` when the kind exists, or cannot be declared as it is.
    """
    kind, group = crd["spec"]["names"]["kind"], group_of_operator(project)
    if existing := [each for each in api_versions(project) if each.kind == kind]:
        raise UsageError(
            f"{kind} exists already ({existing[0].path}), so nothing was written: move it away, and try again"
        )
    ported = port(crd, group=group, version=new.version, formatted=lambda source: _formatted(project, source))
    resource, problem = sample(ported.hub_class, group)
    values = {
        "kind": kind,
        "name": crd["metadata"]["name"],
        "module": snake_case(kind),
        "label": kind.lower(),
        "package": project.package,
        "version": ported.hub,
        "versions": sorted(ported.modules),
        "group": group,
        "differences": repr(list(ported.differences)),
    }
    example = SAMPLE.format_map(values)
    values["sample"] = "" if problem else Path(example).name
    texts = {kept(crd): text}
    for name, source in ported.modules.items():
        texts |= package_of_version(project, name)
        path = API.format_map({**values, "version": name})
        texts[path] = source
        if name in ported.schemas:
            texts[str(Path(path).with_suffix(".json"))] = beside(ported.schemas[name])
    if not problem:
        texts[example] = yaml.safe_dump(resource, sort_keys=False)
    templates = {"tests/unit/test_{module}_crd.py": "test_from_crd.py.j2"}
    if not new.no_controller:
        templates[CONTROLLER] = "controller_from_crd.py.j2"
    texts |= rendered(project, templates, values)
    return Plan(root=project.root, texts=texts, notes=tuple(_notes(new, kind, ported, problem)))


def changes(project: Project, crd: Resource) -> list[str] | None:
    """How `crd` differs from the definition that the classes were made from; None when they were not made yet."""
    path = project.root / kept(crd)
    if not path.exists():
        return None
    return differences(parse_crd(str(path), path.read_text(encoding="utf-8"))[0], crd)


def kept(crd: Resource) -> str:
    """The file of a definition in the repository."""
    return f"tests/crds/{crd['metadata']['name']}.yaml"


def _formatted(project: Project, source: str) -> str:
    """As the repository's formatter wants it; what its linter says of names and texts in a definition is silenced."""
    name = f"src/{project.package}/kind.py"
    text = formatted(project, source, name)
    codes = ", ".join(sorted(complaints(project, text, name)))
    return f"# ruff: noqa: {codes}\n{text}" if codes else text


def _notes(new: NewKind, kind: str, ported: Port, problem: str) -> Iterator[str]:
    if ported.differences:
        yield f"The classes express the whole definition of {kind} but this:"
        yield from (f"  {each}" for each in ported.differences)
    else:
        yield f"The classes express the whole definition of {kind}."
    if problem:
        yield f"No sample was written: a {kind} with the required fields alone is refused ({problem}). Write one."
    handler = "" if new.no_controller else "write the handler; "
    yield f"Next: {handler}`invoke test --unit` compares the classes with the definition."
