"""Parts: plans the files of what an operator serves beside its own kinds.

You need it for `invoke gen-controller --for`, `gen-task` and `gen-reconciler`. All of it lies in the folder of the
controllers, where the operator discovers it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from ..errors import UsageError
from ..kinds import Scope, builtin
from ..naming import check_kind, check_plural, snake_case
from ..scaffold.project import Project
from .generate import Request
from .plan import Plan, check_finalizes, check_free, render
from .survey import api_versions, group_of_operator

__all__ = ["plan_controller_of", "plan_reconciler", "plan_task"]

# As objects and their kinds are written: `v1/Pod`, `apps/v1/Deployment`.
OF: Final = re.compile(r"(?P<api_version>(?:[a-z0-9]+(?:[-.][a-z0-9]+)*/)?v[0-9][a-z0-9]*)/(?P<kind>[A-Z][A-Za-z0-9]*)")


def plan_controller_of(project: Project, request: Request, of: str) -> Plan:
    """A controller of the kind `of`, which is there without this operator. The request's kind is the controller's name.

    Raises: `UsageError` when a name cannot be used, or the request says what only a kind of one's own has.
    """
    check_kind(request.kind, "name of a controller", example="Deployment")
    check_plural(request.plural)
    if request.finalizer:
        check_finalizes(request.kind)
    match = OF.fullmatch(of)
    if match is None:
        raise UsageError(f"--for is {of!r}: use API version and kind, for example apps/v1/Deployment or v1/Pod")
    api_version, kind = match["api_version"], match["kind"]
    if request.group or request.short_names:
        raise UsageError(f"--group and --short-name are for new kinds, and {kind} exists: leave them out")
    own = [known for known in api_versions(project) if known.kind == kind]
    if own and api_version.rpartition("/")[0] == (own[0].group or group_of_operator(project)):
        where = own[0].path.relative_to(project.root)
        raise UsageError(f"{kind} is a kind of this operator ({where}): leave out --for, it has its controller")
    known = builtin(api_version, kind)
    if known and known[0] != request.plural:
        raise UsageError(f"the plural of {kind} ({api_version}) is {known[0]}: say that in place of {request.plural}")
    if known and request.cluster_scoped and known[1] is Scope.NAMESPACED:
        raise UsageError(f"{kind} ({api_version}) is namespaced: leave out --cluster-scoped")
    cluster_scoped = request.cluster_scoped if known is None else known[1] is Scope.CLUSTER
    values = {
        "api_version": api_version,
        "kind": kind,
        "plural": request.plural,
        "known": known is not None,
        "cluster_scoped": cluster_scoped,
        "finalizer": request.finalizer,
    }
    note = (
        f"{kind} is not a kind of Kubernetes itself, and is taken to be "
        f"{'cluster-scoped' if cluster_scoped else 'namespaced'}. The operator is ready where its CRD is installed."
    )
    templates = {"controllers": "controller_of.py.j2", "unit": "test_controller_of.py.j2"}
    return _planned(project, request.kind, "a controller", templates, values, *([] if known else [note]))


def plan_task(project: Project, name: str) -> Plan:
    """A periodic task. Raises: `UsageError` when the name cannot be used."""
    check_plural(name, "name of a task", example="stale-reports")
    templates = {
        "controllers": "periodic_task.py.j2",
        "unit": "test_periodic_task.py.j2",
        "integration": "test_periodic_task_integration.py.j2",
    }
    return _planned(project, name, "a task", templates, {"function": _module(name)})


def plan_reconciler(project: Project, name: str) -> Plan:
    """A reconciler. Raises: `UsageError` when the name cannot be used."""
    check_kind(name, "name of a reconciler", example="PodCounter")
    templates = {
        "controllers": "reconciler.py.j2",
        "unit": "test_reconciler.py.j2",
        "integration": "test_reconciler_integration.py.j2",
    }
    return _planned(project, name, "a reconciler", templates, {})


def _module(name: str) -> str:
    return snake_case(name.replace("-", "_"))


def _planned(
    project: Project, name: str, what: str, templates: Mapping[str, str], values: Mapping[str, Any], *notes: str
) -> Plan:
    """A module in the folder of the controllers, and its tests; `templates` says which there are."""
    module, tests = _module(name), project.root / "tests"
    paths = {
        "controllers": project.source / "controllers" / f"{module}.py",
        "unit": tests / "unit" / f"test_{module}.py",
        "integration": tests / "integration" / f"test_{module}.py",
    }
    values = {
        **values,
        "name": name,
        "label": name.lower(),
        "selector": f"{group_of_operator(project)}/{name.lower()}",
        "package": project.package,
        "module": module,
    }
    texts = {paths[place]: render(template, values, paths[place]) for place, template in templates.items()}
    check_free(name, what, texts)
    begin = (
        f"Next: write in {paths['controllers'].relative_to(project.root)} what is done; `invoke test` runs its tests."
    )
    return Plan(root=project.root, texts=texts, notes=(*notes, begin))
