"""Tasks: the `invoke` tasks of an operator repository. Each is thin: its work is done in a module of its own.

You need it in tasks.py only. Imports at the top are light, so that `invoke --list` needs nothing but invoke.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from invoke.context import Context
from invoke.tasks import Task

from bonny.errors import UsageError

from ..project import Project
from . import sandbox as sandbox
from .command_line import check_command_line as check_command_line
from .failure import task
from .positional import FromCrd
from .shipping import image as image
from .shipping import install as install
from .shipping import lock as lock
from .shipping import pin_tags as pin_tags
from .shipping import uninstall as uninstall

if TYPE_CHECKING:
    from .plan import Plan

DRY_RUN = "show what would be written, as a diff, and write nothing"


NEW_KIND = {
    "plural": "plural of the kind in lower case: widgets",
    "version": "v1, v1beta1, v2alpha1 (default v1, for a new kind; with --from-crd all versions)",
    "cluster_scoped": "objects of the kind have no namespace",
    "short_name": "short name for kubectl; repeat it, or separate several with commas",
    "group": "API group, if not the operator's own",
    "dry_run": DRY_RUN,
    "from_crd": "the definition of the kind: a file, - for the standard input, or its name in the cluster",
}


@task(
    klass=FromCrd,
    iterable=["short_name"],
    help={
        "kind": "kind in CamelCase: Widget; with --for the name of the controller",
        "for": "an existing kind, such as apps/v1/Deployment: add a controller for it, and no API",
        "finalizer": "add a finalizer: the controller cleans up before an object is deleted",
        "bare": "leave out the example, which publishes a field in a ConfigMap",
        "no_controller": "add only the API, a sample and a test, as gen-api does",
        **NEW_KIND,
    },
)
def gen_controller(
    c: Context,
    kind: str,
    plural: str,
    version: str = "",
    cluster_scoped: bool = False,
    short_name: list[str] | None = None,
    group: str = "",
    for_: str = "",
    finalizer: bool = False,
    bare: bool = False,
    no_controller: bool = False,
    dry_run: bool = False,
    from_crd: str = "",
) -> int:
    """Add a kind: API, controller, sample and tests; or, with another --version, a version of an existing kind."""
    from . import generate, parts

    if from_crd:
        if plural or cluster_scoped or short_name or group or for_ or finalizer or bare:
            raise UsageError("with --from-crd the definition says all of the kind: leave out its names and options")
        return _port(c, from_crd, kind, version, controller=not no_controller, dry_run=dry_run)
    if version and for_:
        raise UsageError("--version is for a kind of your own, and --for names its own: leave one of them out")
    if for_ and (bare or no_controller):
        raise UsageError("--bare and --no-controller are for a kind of your own: leave them out with --for")
    if no_controller and (bare or finalizer):
        raise UsageError("--bare and --finalizer are for a controller: leave them out, or leave out --no-controller")
    request = generate.NewKind(
        kind=kind,
        plural=plural,
        version=version,
        cluster_scoped=cluster_scoped,
        short_names=tuple(_names(short_name)),
        group=group,
        finalizer=finalizer,
        controller=not no_controller,
        bare=bare,
    )
    project = Project.at(Path(c.root))
    plan = parts.plan_controller_of(project, request, for_) if for_ else generate.plan_kind(project, request)
    _carry_out(plan, dry_run=dry_run)
    return 0


@task(
    klass=FromCrd,
    iterable=["short_name"],
    help={"kind": "kind in CamelCase: Widget; with --from-crd one of several in a file", **NEW_KIND},
)
def gen_api(
    c: Context,
    kind: str,
    plural: str,
    version: str = "",
    cluster_scoped: bool = False,
    short_name: list[str] | None = None,
    group: str = "",
    dry_run: bool = False,
    from_crd: str = "",
) -> None:
    """Add a kind without a controller: API, sample and test, for a kind that other code reads."""
    gen_controller.body(
        c,
        kind,
        plural,
        version=version,
        cluster_scoped=cluster_scoped,
        short_name=short_name,
        group=group,
        no_controller=True,
        dry_run=dry_run,
        from_crd=from_crd,
    )


def _port(c: Context, source: str, kind: str, version: str, *, controller: bool, dry_run: bool) -> int:
    """Write the files for a definition, or print how it differs from the one that was kept: code 1 if it does."""
    from ..from_crd.reading import read_crd
    from . import port

    project = Project.at(Path(c.root))
    crd, text = read_crd(source, kind=kind)
    changes = port.changes(project, crd)
    if changes is None:
        _carry_out(port.plan_port(project, crd, text, version=version, controller=controller), dry_run=dry_run)
        return 0
    kept = port.kept(project, crd).relative_to(project.root)
    if changes:
        print(f"{source} differs from {kept}, and nothing was changed:", *(f"  {each}" for each in changes), sep="\n")
        print(f"Next: put it in the place of {kept}, and change the classes until `invoke test --unit` passes.")
    else:
        print(f"nothing to do: {source} says the same as {kept}")
    return int(bool(changes))


@task(help={"name": "name of the task in lower case: stale-reports", "dry_run": DRY_RUN})
def gen_task(c: Context, name: str, dry_run: bool = False) -> None:
    """Add a periodic task: a function that runs at an interval, and its tests."""
    from . import parts

    _carry_out(parts.plan_task(Project.at(Path(c.root)), name), dry_run=dry_run)


@task(help={"name": "name of the class in CamelCase: ConfigMapCounter", "dry_run": DRY_RUN})
def gen_reconciler(c: Context, name: str, dry_run: bool = False) -> None:
    """Add a reconciler: a class that visits all objects of a kind at an interval, and its tests."""
    from . import parts

    _carry_out(parts.plan_reconciler(Project.at(Path(c.root)), name), dry_run=dry_run)


@task(help={"name": "name for spec.schedulerName of pods: cheap-node", "dry_run": DRY_RUN})
def gen_scheduler(c: Context, name: str, dry_run: bool = False) -> None:
    """Add a scheduler: its class, a sample pod and tests."""
    from . import parts

    _carry_out(parts.plan_scheduler(Project.at(Path(c.root)), name), dry_run=dry_run)


@task(
    help={
        "kind": "kind of this operator, Widget; or another one, Pod or apps/v1/Deployment, which then fails open",
        "dry_run": DRY_RUN,
    }
)
def gen_webhook(c: Context, kind: str, dry_run: bool = False) -> None:
    """Add an admission webhook: a class that sets defaults and refuses writes of a kind, and its tests."""
    from . import parts

    _carry_out(parts.plan_webhook(Project.at(Path(c.root)), kind), dry_run=dry_run)


def _carry_out(plan: Plan, *, dry_run: bool) -> None:
    """Write the files of `plan` and print their names, or show them."""
    if dry_run:
        print(plan.diff(), end="")
        return
    if written := plan.write():
        print(*(f"wrote {name}" for name in written), *plan.notes, sep="\n")
    else:
        print("nothing to do: all files exist")


@task(
    iterable=["with_", "without"],
    help={
        "image": "container image to deploy (default: the image in pyproject.toml; without one there is no Deployment)",
        "namespace": "namespace to deploy to (default: the operator's name)",
        "out": "file to write, or - for the terminal (default manifest.yaml)",
        "local": "leave out the Deployment and webhooks: the operator runs on this machine",
        "crds-only": "leave out everything but the definitions of the operator's kinds (and who converts them)",
        "with": "parts to add, by name: service-monitor,alerts,dashboards",
        "without": "parts to leave out, by name: network-policy,service,pdb",
    },
)
def manifest(
    c: Context,
    image: str = "",
    namespace: str = "",
    out: str = "manifest.yaml",
    local: bool = False,
    crds_only: bool = False,
    with_: Iterable[str] | None = None,
    without: Iterable[str] | None = None,
) -> None:
    """Write the manifest of the operator: CRDs, permissions, Deployment."""
    from ..manifest import bundle, command

    project = Project.at(Path(c.root))
    usual = f"{project.image}:{project.version}" if project.image else None
    objects = bundle.documents(
        project.load_operator(),
        image=image or usual,
        namespace=namespace or None,
        local=local,
        crds_only=crds_only,
        include=_names(with_),
        exclude=_names(without),
    )
    command.write(bundle.to_yaml(objects), out if out == "-" else str(project.root / out))
    if out != "-":
        print(f"wrote {out}")


@task(
    name="dashboards",
    help={
        "out": "folder to write to (default monitoring)",
        "job": "name of the Prometheus job that scrapes the operator (default: the operator's name)",
    },
)
def write_dashboards(c: Context, out: str = "monitoring", job: str = "") -> None:
    """Write alert rules for Prometheus and a dashboard for Grafana."""
    from .dashboards import write

    project = Project.at(Path(c.root))
    for path in write(project.root / out, job=job or project.load_operator().name):
        print(f"wrote {path.relative_to(project.root) if path.is_relative_to(project.root) else path}")


@task(
    name="run-local",
    auto_shortflags=False,
    help={
        "sandbox": "start a real API server on this machine for this run",
        "reload": "restart the operator when a source file changes; the sandbox and its objects stay",
        "apply_samples": "apply the objects in samples/ first",
        "as_service_account": "run with the permissions of the manifest only, which shows missing ones",
        "namespace": "watch only this namespace (default: as operator.py says)",
        "context": "context of your kubeconfig (default: the current one)",
    },
)
def run_locally(
    c: Context,
    sandbox: bool = False,
    reload: bool = False,
    apply_samples: bool = False,
    as_service_account: bool = False,
    namespace: str = "",
    context: str = "",
) -> None:
    """Run the operator on this machine, with its CRDs installed first. Ctrl-C ends it."""
    from .run_local import Options, run

    project = Project.at(Path(c.root))
    options = Options(
        sandbox=sandbox,
        namespace=namespace,
        context=context,
        apply_samples=apply_samples,
        as_service_account=as_service_account,
    )
    if reload:
        from .reload import run_reloading

        run_reloading(project, options)
    else:
        run(project.load_operator(), options, samples=project.root / "samples")


@task(
    name="doctor",
    help={
        "sandbox": "start a real API server on this machine, install the manifest there, and check that",
        "namespace": "namespace that the operator is deployed to (default: its name)",
        "context": "context of your kubeconfig (default: the current one)",
    },
)
def examine(c: Context, sandbox: bool = False, namespace: str = "", context: str = "") -> int:
    """Check the cluster: supported version, CRDs, permissions, samples. Changes nothing."""
    from .doctor import run

    project = Project.at(Path(c.root))
    samples = project.root / "samples"
    return int(not run(project.load_operator(), samples, sandbox=sandbox, namespace=namespace, context=context))


@task(
    name="migrate",
    iterable=["remove_version"],
    help={
        "kind": "kind of the operator, in CamelCase: Widget",
        "remove_version": "old version that the next release of the CRD will lack: v1alpha1; may be repeated",
        "dry_run": "print what there is to do, and change nothing",
        "context": "context of your kubeconfig (default: the current one)",
    },
)
def migrate_kind(
    c: Context, kind: str, remove_version: list[str] | None = None, dry_run: bool = False, context: str = ""
) -> int:
    """Rewrite all objects of a kind in its storage version, so that an old version can be removed.

    Run it again after an interruption. It ends with code 1 if a policy or a webhook refused to let it write an object.
    """
    import asyncio

    from ..crd.definition import crds
    from .deploy import cluster_of
    from .migrate import migrate

    operator = Project.at(Path(c.root)).load_operator()
    definitions = {crd["spec"]["names"]["kind"]: crd for crd in crds(operator.crds, operator.group)}
    if kind not in definitions:
        raise UsageError(f"the operator has no kind {kind}: it has {', '.join(definitions) or 'none of its own'}")
    removed = remove_version or []
    return int(not asyncio.run(migrate(cluster_of(context), definitions[kind], removed=removed, dry_run=dry_run)))


@task(name="test", help={"unit": "only the unit tests, which need no API server"})
def run_tests(c: Context, unit: bool = False) -> int:
    """Run the tests; the integration tests start a real API server."""
    from . import quality

    return quality.run_tests(Path(c.root), unit=unit)


@task()
def lint(c: Context) -> int:
    """Check style and types."""
    from . import quality

    return quality.run_checks(Path(c.root))


@task(
    name="update-runtime",
    auto_shortflags=False,
    help={
        "ref": "tag, branch or commit of the template (default: its newest tag; of a folder, what lies there)",
        "from": "folder or URL of the template (default: the one that is recorded)",
        "force": "also replace files of vendor/ that were edited here",
    },
)
def update_vendored(c: Context, ref: str = "", from_: str = "", force: bool = False) -> None:
    """Replace vendor/bonny and vendor/bonny_dev with another version of the template."""
    from .update_runtime import update_runtime

    report = update_runtime(Path(c.root), ref=ref, origin=from_, force=force)
    if report.changelog:
        print(f"{report.changelog}\n")
    print(f"vendor/bonny and vendor/bonny_dev are {report.after} now, from {report.origin}; before: {report.before}")
    for name, changed in report.kept:
        advice = "; the new version changed it, too: compare them" if changed else ""
        print(f"kept vendor/{name}, which was edited here{advice}")
    for name in report.edited:
        print(f"edited {name}")
    for sentence in report.left:
        print(sentence)
    first = "pip install -e '.[dev]', invoke lock, " if "pyproject.toml" in report.edited else ""
    print(f"next: {first}invoke test, and commit")


def _names(flags: Iterable[str] | None) -> list[str]:
    """The names in a flag that may be given several times, and name several with commas. invoke makes None a list."""
    return [name.strip() for flag in flags or () for name in flag.split(",")]


# No task has the name of a module of this package: importing the module would replace the task.
__all__ = ["check_command_line", "sandbox", *(name for name, each in globals().items() if isinstance(each, Task))]  # noqa: PLE0604
