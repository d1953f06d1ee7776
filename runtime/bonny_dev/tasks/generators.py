"""Generators: plans the files of everything that an operator serves besides its own kinds.

You need it for `invoke gen-controller --for`, `gen-task`, `gen-reconciler`, `gen-scheduler` and `gen-webhook`. All
modules are in the folder of the controllers, where the operator discovers them.
"""

from __future__ import annotations

import builtins
import difflib
import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from bonny.errors import UsageError
from bonny.kinds import Scope, builtin, builtin_kinds
from bonny.naming import check_dns_label, plural_of

from ..naming import check_class, check_plural, module_to_kind, snake_case
from ..project import Project
from .options import NewKind
from .plan import CONTROLLER, Plan, check_finalizes, check_free, rendered
from .survey import api_versions, group_of_operator

# As objects and their kinds are written: `v1/Pod`, `apps/v1/Deployment`.
OF: Final = re.compile(r"(?P<api_version>(?:[a-z0-9]+(?:[-.][a-z0-9]+)*/)?v[0-9][a-z0-9]*)/(?P<kind>[A-Z][A-Za-z0-9]*)")


def plan_controller_of(project: Project, request: NewKind, of: str) -> Plan:
    """A controller of the kind `of`, which exists without this operator. The request's kind is the controller's name.

    Raises: `UsageError` when a name cannot be used, or the request has options that are only for new kinds.
    """
    check_class(request.kind, "name of a controller", example="Deployment")
    check_plural(request.plural)
    if request.finalizer:
        check_finalizes(request.kind)
    values = {**_existing_kind(project, request, of), "finalizer": request.finalizer}
    # There is no integration test: the required fields of an object of this kind are unknown.
    plan = _planned(project, request.kind, "controller_of", values, tests=("unit",))
    if values["builtin"]:
        return plan
    scope = "cluster-scoped" if values["cluster_scoped"] else "namespaced"
    taken = f"is taken to be {scope}. The operator is ready where its CRD is installed."
    note = f"{values['kind']} is not a kind of Kubernetes itself, and {taken}"
    return replace(plan, notes=(note, *plan.notes))


def _existing_kind(project: Project, request: NewKind, of: str) -> dict[str, Any]:
    """Values for the templates about the kind `of`: from the table of Kubernetes' own kinds, else from the request."""
    match = OF.fullmatch(of)
    if match is None:
        raise UsageError(f"--for is {of!r}: use API version and kind, for example apps/v1/Deployment or v1/Pod")
    api_version, kind = match["api_version"], match["kind"]
    if request.group or request.short_names:
        raise UsageError(f"--group and --short-name are for new kinds, and {kind} exists: leave them out")
    own = [version for version in api_versions(project) if version.kind == kind]
    if own and api_version.rpartition("/")[0] == own[0].group:
        raise UsageError(f"{kind} is a kind of this operator ({own[0].path}): leave out --for, it has its controller")
    served = builtin(api_version, kind)
    if served is None and _is_of_kubernetes(api_version):
        raise UsageError(f"--for is {of}, which is not a kind of Kubernetes: {_suggestion(of)}")
    if served and served[0] != request.plural:
        raise UsageError(f"the plural of {kind} ({api_version}) is {served[0]}: use it instead of {request.plural}")
    if served and request.cluster_scoped and served[1] is Scope.NAMESPACED:
        raise UsageError(f"{kind} ({api_version}) is namespaced: leave out --cluster-scoped")
    cluster_scoped = request.cluster_scoped or (served is not None and served[1] is Scope.CLUSTER)
    return {**match.groupdict(), "builtin": bool(served), "plural": request.plural, "cluster_scoped": cluster_scoped}


def _is_of_kubernetes(api_version: str) -> bool:
    """Whether only Kubernetes itself can serve the group: that of a CRD has a dot."""
    group = api_version.rpartition("/")[0]
    return "." not in group or group in {version.rpartition("/")[0] for version, _ in builtin_kinds()}


def _suggestion(of: str) -> str:
    names = {f"{api_version}/{kind}".lower(): f"{api_version}/{kind}" for api_version, kind in builtin_kinds()}
    close = difflib.get_close_matches(of.lower(), names, n=1, cutoff=0.8)
    return f"did you mean {names[close[0]]}?" if close else "see `kubectl api-resources` for its API version and kind"


def plan_task(project: Project, name: str) -> Plan:
    """A periodic task. Raises: `UsageError` when the name cannot be used."""
    check_plural(name, "name of a task", example="stale-reports")
    return _planned(project, name, "task", {})


def plan_reconciler(project: Project, name: str) -> Plan:
    """A reconciler. Raises: `UsageError` when the name cannot be used."""
    check_class(name, "name of a reconciler", example="ConfigMapCounter")
    return _planned(project, name, "reconciler", {})


def plan_scheduler(project: Project, name: str) -> Plan:
    """A scheduler, and a sample pod for it. Raises: `UsageError` when the name cannot be used."""
    check_dns_label(name, "scheduler name", "cheap-node")
    if name == "default-scheduler":
        raise UsageError(f"{name!r} is the scheduler of Kubernetes itself: choose another name, for example cheap-node")
    class_name = module_to_kind(name.replace("-", "_"))
    if not class_name.isidentifier() or keyword.iskeyword(class_name):
        raise UsageError(
            f"{name!r} cannot be a scheduler here: no class can be called {class_name}; use for example my-{name}"
        )
    sample = {"samples/{name}.yaml": "scheduler_sample.yaml.j2"}
    values = {"class": class_name, "module": snake_case(class_name)}
    return replace(_planned(project, name, "scheduler", values, more=sample), extras=("scheduler", "filters"))


def plan_webhook(project: Project, of: str) -> Plan:
    """An admission webhook of a kind of this operator, whose objects it sees in the hub's version, or of another kind:
    `Pod`, or `cert-manager.io/v1/Certificate`. It needs the extra `webhooks`.

    Raises: `UsageError` when the kind does not exist.
    """
    own = [each for each in api_versions(project) if each.kind == of]
    if own:
        reviewed = next((each for each in own if each.hub), None)
        if reviewed is None:
            raise UsageError(f"no version of {of} has hub = True: set it on one of them")
        sample = f"{of.lower()}-{reviewed.version}.yaml"
        values: dict[str, Any] = {
            "kind": of,
            "api": ".".join(reviewed.path.relative_to(f"src/{project.package}").with_suffix("").parts),
            "api_version": f"{reviewed.group}/{reviewed.version}",
            "sample": sample,
            "cluster_scoped": reviewed.cluster_scoped,
            "own": True,
        }
        if not (project.root / "samples" / sample).is_file():
            raise UsageError(f"samples/{sample} is missing: write it, the tests of a webhook begin with a valid object")
    else:
        values = {**_reviewed_kind(of), "own": False}
    # The required fields of an object of another kind are unknown.
    tests = ("unit", "integration") if own else ("unit",)
    plan = _planned(project, f"{values['kind']}Admission", "webhook", values, tests=tests)
    notes = list(plan.notes)
    if not (own or values["builtin"]):
        taken = f"is taken to be namespaced, with the plural {values['plural']}: correct its Kind if that is wrong."
        notes.insert(0, f"{values['kind']} is not a kind of Kubernetes itself, and {taken}")
    return replace(plan, notes=tuple(notes), extras=("webhooks",))


def _reviewed_kind(of: str) -> dict[str, Any]:
    """Values for the templates about a kind that is not this operator's: `Pod`, `apps/v1/Deployment`."""
    check_class(of.rpartition("/")[2])
    named = [f"{api_version}/{kind}" for api_version, kind in builtin_kinds() if of in (kind, f"{api_version}/{kind}")]
    match = OF.fullmatch(named[0] if len(named) == 1 else of)
    if match is None and named:
        raise UsageError(f"{of} exists in several versions: choose {' or '.join(named)}")
    if match is None or (not named and _is_of_kubernetes(match["api_version"])):
        raise UsageError(
            f"{of} is neither a kind of this operator nor of Kubernetes: {_suggestion(of)}, or add it by "
            "`invoke gen-controller`"
        )
    served = builtin(match["api_version"], match["kind"])
    plural, scope = served or (plural_of(match["kind"]), Scope.NAMESPACED)
    cluster_scoped = scope is Scope.CLUSTER
    return {**match.groupdict(), "builtin": bool(served), "plural": plural, "cluster_scoped": cluster_scoped}


def _planned(
    project: Project,
    name: str,
    template: str,
    values: Mapping[str, Any],
    *,
    tests: Sequence[str] = ("unit", "integration"),
    more: Mapping[str, str] = MappingProxyType({}),
) -> Plan:
    """A module in the folder of the controllers, its tests, and the files of `more` templates.

    Its objects have a label in the operator's group: generated code must not touch every object of a cluster.
    """
    module = values.get("module") or snake_case(name.replace("-", "_"))
    levels = {f"tests/{level}/test_{module}.py": f"test_{template}_{level}.py.j2" for level in tests}
    # Another name for the module's function where a builtin or ruff (E743) does not allow this one.
    free = f"{module}_" if module == "l" or hasattr(builtins, module) else module
    values = {**values, "name": name, "label": name.lower(), "module": module, "free": free}
    values |= {"package": project.package, "group": group_of_operator(project)}
    texts = rendered(project, {CONTROLLER: f"{template}.py.j2", **levels, **more}, values)
    check_free(name, f"a {template.partition('_')[0]}", texts)
    note = f"Next: edit {CONTROLLER}; `invoke test` runs its tests.".format_map(values)
    return Plan(root=project.root, texts=texts, notes=(note,))
