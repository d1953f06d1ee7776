"""Generate scheduler: plans the files of a scheduler of one's own.

You need it for `invoke gen-scheduler`. The class goes to `controllers/`, where the operator discovers it.
"""

from __future__ import annotations

import keyword

from bonny.errors import UsageError
from bonny.naming import check_dns_label, module_to_kind

from ..naming import snake_case
from ..project import Project
from .plan import Plan, check_free, render

__all__ = ["plan_scheduler"]

# What pods have that name no scheduler.
KUBE_SCHEDULER = "default-scheduler"


def plan_scheduler(project: Project, name: str) -> Plan:
    """Class, tests and sample pod of the scheduler `name`. Raises: `UsageError` when the name cannot be used."""
    values = {"name": name, "class": _class_name(name), "package": project.package}
    values["module"] = module = snake_case(values["class"])
    tests = project.root / "tests"
    targets = {
        project.source / "controllers" / f"{module}.py": "scheduler.py.j2",
        project.root / "samples" / f"{name}.yaml": "scheduler_sample.yaml.j2",
        tests / "unit" / f"test_{module}.py": "test_scheduler_unit.py.j2",
        tests / "integration" / f"test_{module}.py": "test_scheduler_integration.py.j2",
    }
    texts = {path: render(template, values, path) for path, template in targets.items()}
    check_free(name, "a scheduler", texts)
    where = (project.source / "controllers" / f"{module}.py").relative_to(project.root)
    note = f"Next: write in {where} how a node is chosen; `invoke test` runs its tests."
    return Plan(root=project.root, texts=texts, notes=(note,))


def _class_name(name: str) -> str:
    """CheapNode for cheap-node. Raises: `UsageError` when `name` is not one, or Python cannot define such a class."""
    check_dns_label(name, "scheduler name", "cheap-node")
    if name == KUBE_SCHEDULER:
        raise UsageError(f"{name!r} is what pods have that name no scheduler: choose another, for example cheap-node")
    made = module_to_kind(name.replace("-", "_"))
    if not made.isidentifier() or keyword.iskeyword(made):
        raise UsageError(
            f"{name!r} cannot be a scheduler here: no class can be called {made}; use for example my-{name}"
        )
    return made
