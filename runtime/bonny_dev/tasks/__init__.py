"""Tasks: the `invoke` tasks of an operator repository. Each is thin: its work is done in a module of its own.

You need it in tasks.py only. Imports at the top are light, so that `invoke --list` needs nothing but invoke.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from invoke.context import Context
from invoke.tasks import Task

from bonny.errors import UsageError

from ..project import Project
from . import sandbox as sandbox
from .command_line import check_command_line as check_command_line
from .declaring import FromCrd, OfAll, task
from .options import (
    ConsoleUrl,
    Definition,
    DryRun,
    KubeContext,
    LocalRun,
    ManifestOptions,
    Move,
    NewApi,
    NewKind,
    separated,
)
from .shipping import image as image
from .shipping import install as install
from .shipping import lock as lock
from .shipping import pin_tags as pin_tags
from .shipping import uninstall as uninstall

if TYPE_CHECKING:
    from .plan import Plan

# `invoke` turns it off, for tasks.py alone; then each task would compile the runtime and its packages again.
sys.dont_write_bytecode = bool(sys.flags.dont_write_bytecode)


@task(klass=FromCrd, iterable=["short_name"])
def gen_controller(c: Context, new: NewKind, dry_run: DryRun = False, from_crd: Definition = "") -> int:
    """Add a kind: API, controller, sample and tests; or, with another --version, a version of an existing kind."""
    from . import generate, generators

    if from_crd:
        if new.plural or new.cluster_scoped or new.short_name or new.group or new.for_ or new.finalizer or new.bare:
            raise UsageError("--from-crd takes names and options from the definition: remove the other arguments")
        return _port(c, from_crd, new, dry_run=dry_run)
    if new.version and new.for_:
        raise UsageError("--version is for a kind of your own, and --for names its own: leave one of them out")
    if new.for_ and (new.bare or new.no_controller):
        raise UsageError("--bare and --no-controller are for a kind of your own: leave them out with --for")
    if new.no_controller and (new.bare or new.finalizer):
        raise UsageError("--bare and --finalizer are for a controller: leave them out, or leave out --no-controller")
    project = Project.at(Path(c.root))
    plan = generators.plan_controller_of(project, new, new.for_) if new.for_ else generate.plan_kind(project, new)
    _carry_out(c, plan, dry_run=dry_run)
    return 0


@task(klass=FromCrd, iterable=["short_name"])
def gen_api(c: Context, new: NewApi, dry_run: DryRun = False, from_crd: Definition = "") -> None:
    """Add a kind without a controller: API, sample and test, for a kind that other code reads."""
    gen_controller(c, **vars(new), no_controller=True, dry_run=dry_run, from_crd=from_crd)


def _port(c: Context, source: str, new: NewKind, *, dry_run: bool) -> int:
    """Write the files for a definition, or print how it differs from the one that was kept: code 1 if it does."""
    from ..from_crd.reading import read_crd
    from . import port_crd

    project = Project.at(Path(c.root))
    crd, text = read_crd(source, kind=new.kind)
    changes = port_crd.changes(project, crd)
    if changes is None:
        _carry_out(c, port_crd.plan_port(project, crd, text, new), dry_run=dry_run)
        return 0
    kept = port_crd.kept(crd)
    if changes:
        print(f"{source} differs from {kept}, and nothing was changed:", *(f"  {each}" for each in changes), sep="\n")
        print(f"Next: replace {kept} with it, then change the classes until `invoke test --unit` passes.")
    else:
        print(f"nothing to do: {source} equals {kept}")
    return int(bool(changes))


@task()
def gen_task(
    c: Context, name: Annotated[str, "name of the task in lower case: stale-reports"], dry_run: DryRun = False
) -> None:
    """Add a periodic task: a function that runs at an interval, and its tests."""
    from . import generators

    _carry_out(c, generators.plan_task(Project.at(Path(c.root)), name), dry_run=dry_run)


@task()
def gen_reconciler(
    c: Context, name: Annotated[str, "name of the class in CamelCase: ConfigMapCounter"], dry_run: DryRun = False
) -> None:
    """Add a reconciler: a class that visits all objects of a kind at an interval, and its tests."""
    from . import generators

    _carry_out(c, generators.plan_reconciler(Project.at(Path(c.root)), name), dry_run=dry_run)


@task()
def gen_scheduler(
    c: Context, name: Annotated[str, "name for spec.schedulerName of pods: cheap-node"], dry_run: DryRun = False
) -> None:
    """Add a scheduler: its class, a sample pod and tests."""
    from . import generators

    _carry_out(c, generators.plan_scheduler(Project.at(Path(c.root)), name), dry_run=dry_run)


@task()
def gen_webhook(
    c: Context,
    kind: Annotated[
        str, "kind of this operator, Widget; or another one, Pod or apps/v1/Deployment, which then fails open"
    ],
    dry_run: DryRun = False,
) -> None:
    """Add an admission webhook: a class that sets defaults and refuses writes of a kind, and its tests."""
    from . import generators

    _carry_out(c, generators.plan_webhook(Project.at(Path(c.root)), kind), dry_run=dry_run)


def _carry_out(c: Context, plan: Plan, *, dry_run: bool) -> None:
    """Write the files of `plan` and print their names, or show them."""
    from . import extras

    project = Project.at(Path(c.root))
    needed = [name for name in plan.extras if name not in project.extras]
    if dry_run:
        print(plan.diff(), end="")
        print(*(f"the extra {name} would be added" for name in needed), sep="\n", end="\n" if needed else "")
        return
    plan.missing()  # before anything is added: it refuses files that exist
    if needed:
        print(*extras.add(project, needed), sep="\n")
    if written := plan.write():
        print(*(f"wrote {name}" for name in written), *plan.notes, sep="\n")
    else:
        print("nothing to do: all files exist")


@task(name="extras")
def list_extras(
    c: Context,
    add: Annotated[str, "extras to add, by name: webhooks,cron"] = "",
    remove: Annotated[str, "extras to remove, by name"] = "",
    sync: Annotated[bool, "make vendor/bonny fit the list in pyproject.toml, as after `cruft update`"] = False,
) -> None:
    """List the optional parts of the runtime, who uses them, and their lines; add or remove some."""
    from . import extras

    if (add and remove) or (sync and (add or remove)):
        raise UsageError("--add, --remove and --sync exclude each other: use one of them")
    project = Project.at(Path(c.root), fitting=not sync)
    if sync:
        print(*extras.sync(project), "vendor/bonny fits pyproject.toml", sep="\n")
    elif add:
        print(*(extras.add(project, separated(add.split(","))) or ["nothing to do: it is there"]), sep="\n")
    elif remove:
        print(*(extras.remove(project, separated(remove.split(","))) or ["nothing to do: it is not there"]), sep="\n")
    else:
        print(*extras.shown(extras.states(project)), sep="\n")


@task(iterable=["with_", "without", "grant_in"])
def manifest(c: Context, options: ManifestOptions) -> None:
    """Write the manifest of the operator: CRDs, permissions, Deployment; as YAML, or for Helm, kustomize or OLM."""
    from .formats import write

    lines, warnings = write(Project.at(Path(c.root)), options)
    print(*lines, sep="\n", end="\n" if lines else "")
    for each in warnings:
        print(f"warning: {each}", file=sys.stderr)


@task(name="crd-check")
def check_definitions(
    c: Context,
    since: Annotated[str, "tag or commit to compare with (default: the last tag)"] = "",
) -> int:
    """Compare CRDs and permissions with the last tag: changes that break stored objects or clients are refused.

    It ends with code 1 if something breaks that `accepted-breaks` in pyproject.toml does not name.
    """
    from .crd_changes import check

    return int(not check(Project.at(Path(c.root)), since))


@task(name="api-docs")
def write_api_page(
    c: Context,
    out: Annotated[str, "file to write (default docs/api.md)"] = "",
    check: Annotated[bool, "write nothing; end with code 1 if the page is there and outdated"] = False,
) -> int:
    """Write a reference page of the operator's own kinds: fields, types, defaults, rules and samples."""
    from . import api_page

    project = Project.at(Path(c.root))
    if not check:
        print(f"wrote {api_page.write(project, out)}")
        return 0
    problem = api_page.problem(project, out)
    print(problem or "nothing to do: the page is up to date, or there is none")
    return int(bool(problem))


@task(name="dashboards")
def write_dashboards(
    c: Context,
    out: Annotated[str, "folder to write to (default monitoring)"] = "monitoring",
    job: Annotated[str, "name of the Prometheus job that scrapes the operator (default: the operator's name)"] = "",
) -> None:
    """Write alert rules for Prometheus and a dashboard for Grafana."""
    from .dashboards import write

    project = Project.at(Path(c.root))
    for path in write(project.root / out, job=job or project.load_operator().name):
        print(f"wrote {path.relative_to(project.root) if path.is_relative_to(project.root) else path}")


@task(name="run-local", auto_shortflags=False)
def run_locally(c: Context, options: LocalRun) -> None:
    """Run the operator on this machine, with its CRDs installed first. Ctrl-C ends it."""
    project = Project.at(Path(c.root))
    if options.reload:
        from .reload import run_reloading

        run_reloading(project, options)
    elif options.replicas != 1:
        from .local_replicas import run_replicas

        run_replicas(project, options)
    else:
        from .run_local import run

        run(project.load_operator(), options, root=project.root)


@task(name="doctor")
def examine(
    c: Context,
    sandbox: Annotated[
        bool, "start a real API server on this machine, install the manifest there, and check that"
    ] = False,
    namespace: Annotated[str, "namespace that the operator is deployed to (default: its name)"] = "",
    context: KubeContext = "",
) -> int:
    """Check the cluster: supported version, CRDs, permissions, children, samples. Changes nothing."""
    from .doctor import run

    project = Project.at(Path(c.root))
    samples = project.root / "samples"
    return int(not run(project.load_operator(), samples, sandbox=sandbox, namespace=namespace, context=context))


@task(name="why", klass=OfAll)
def explain(
    c: Context,
    target: Annotated[str, "the object, as kind/namespace/name or kind/name; with --all a kind, or nothing"],
    all: Annotated[str | bool, "one line for each object, of a kind or of all"] = False,  # noqa: A002  the option
    json: Annotated[bool, "the answers as JSON, for scripts"] = False,
    url: ConsoleUrl = "",
    namespace: Annotated[str, "namespace that the operator is deployed to (default: its name)"] = "",
    context: KubeContext = "",
) -> int:
    """Show why an object is as it is: ten answers. Changes nothing.

    They come from the API server, and from the memory of the operator where it has the extra `console`.

    It ends with code 1 if something is wrong.
    """
    import asyncio

    from bonny.naming import check_dns_label

    from ..why.command import why
    from .deploy import cluster_of

    root = Path(c.root)
    operator = Project.at(root).load_operator()
    where = check_dns_label(namespace or operator.name, "namespace")
    if isinstance(all, str):
        if target:
            raise UsageError(f"--all names {all[:60]!r}, and {target[:60]!r} stands before it: leave one of them out")
        target = all
    cluster, form = cluster_of(context), {"everything": bool(all), "as_json": json}
    return int(not asyncio.run(why(cluster, operator, target, namespace=where, url=url, root=root, **form)))


@task(name="console")
def open_console(
    c: Context,
    url: ConsoleUrl = "",
    port: Annotated[int, "port of the page on this machine (default 0: any free one)"] = 0,
    namespace: Annotated[str, "namespace that the operator is deployed to (default: its name)"] = "",
    context: KubeContext = "",
) -> None:
    """Serve a page about the running operator, which pauses objects or runs their handlers. Ctrl-C ends it."""
    from bonny.naming import check_dns_label

    from ..console import command
    from .deploy import cluster_of

    root = Path(c.root)
    operator = Project.at(root).load_operator()
    where = check_dns_label(namespace or operator.name, "namespace")
    command.open_console(cluster_of(context), operator, namespace=where, url=url, port=port, root=root)


@task(name="top")
def print_queues(
    c: Context,
    url: ConsoleUrl = "",
    once: Annotated[bool, "print it once"] = False,
    namespace: Annotated[str, "namespace that the operator is deployed to (default: its name)"] = "",
    context: KubeContext = "",
) -> int:
    """Print the queues and streams of a running operator, every two seconds. Ctrl-C ends it."""
    from bonny.naming import check_dns_label

    from ..console import command
    from .deploy import cluster_of

    root = Path(c.root)
    operator = Project.at(root).load_operator()
    where = check_dns_label(namespace or operator.name, "namespace")
    return command.top(cluster_of(context), operator, namespace=where, url=url, once=once, root=root)


@task(name="migrate", iterable=["remove_version"])
def migrate_kind(
    c: Context,
    kind: Annotated[str, "kind of the operator, in CamelCase: Widget"],
    remove_version: Annotated[
        list[str] | None, "old version that the next release of the CRD will lack: v1alpha1; may be repeated"
    ] = None,
    dry_run: Annotated[bool, "print the steps to do, and change nothing"] = False,
    context: KubeContext = "",
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


@task(name="migrate-from", iterable=["finalizer", "annotation", "manager"])
def move_from(c: Context, options: Move) -> int:
    """Take over from an operator of another framework: finalizers, annotations, field managers; or handlers of kopf.

    It ends with code 1 if an object could not be changed.
    """
    from .migrate_from import move_code, move_objects

    project = Project.at(Path(c.root))
    if not options.code:
        return int(not move_objects(project, options))
    port = move_code(project, options)
    if port.plan.texts:
        _carry_out(c, port.plan, dry_run=options.dry_run)
    elif not port.unknown:
        print("no handler needs a controller: nothing was written")
    return 0


@task(name="test")
def run_tests(c: Context, unit: Annotated[bool, "only the unit tests, which need no API server"] = False) -> int:
    """Run the tests; the integration tests start a real API server."""
    from . import quality

    return quality.run_tests(Path(c.root), unit=unit)


@task(name="prove", iterable=["only"])
def prove_operator(
    c: Context,
    minutes: Annotated[int, "start no further life after so many minutes (default 0: run all)"] = 0,
    seed: Annotated[int, "order of the lives, and hash seed of the operator (default 0)"] = 0,
    only: Annotated[
        list[str] | None, "name of a life, as it is printed; * stands for any text; may be repeated"
    ] = None,
    report: Annotated[str, "HTML file to write the findings to"] = "",
    shrink: Annotated[
        int, "seconds to look for a smaller sample that shows a finding (default 60; 0: do not look)"
    ] = 60,
    save: Annotated[
        bool, "write a test for each finding to tests/test_prove_<life>.py; it fails until that is fixed"
    ] = False,
    thorough: Annotated[bool, "run also those lives of which a usual run has only a few"] = False,
    fuzz: Annotated[int, "objects that are made from the schema, for each sample (default 4; 0: none)"] = 4,
) -> int:
    """Kill the operator at each of its writes, let its requests fail, and check that it ends in the same state.

    It lives through the objects in samples/, in a sandbox of its own. It ends with code 1 if it found something.
    """
    from ..prove import Options
    from .survival import run

    options = Options(minutes=minutes, seed=seed, only=only or (), shrink=shrink, thorough=thorough, fuzz=fuzz)
    return run(Path(c.root), options, report=report, save=save)


@task()
def lint(c: Context) -> int:
    """Check style and types."""
    from . import quality

    return quality.run_checks(Path(c.root))


@task(name="update-runtime", auto_shortflags=False)
def update_vendored(
    c: Context,
    ref: Annotated[
        str, "tag, branch or commit of the template (default: its newest tag; of a folder, its present content)"
    ] = "",
    from_: Annotated[str, "folder or URL of the template (default: as recorded)"] = "",
    force: Annotated[bool, "also replace files that were edited here"] = False,
) -> None:
    """Replace the runtime and the developer tools with another version of the template."""
    from .update_runtime import OUTCOMES, SHOWN, update_runtime

    report = update_runtime(Path(c.root), ref=ref, origin=from_, force=force)
    if report.changelog:
        print(f"{report.changelog}\n")
    print(f"vendor/bonny and the developer tools are {report.after} now, from {report.origin}; before: {report.before}")
    for name in report.changed[:SHOWN]:
        print(f"vendor/bonny/{name} is changed by the new version")
    if more := report.changed[SHOWN:]:
        print(f"and {len(more)} more: git diff shows them")
    for name, outcome in report.edited:
        print(f"vendor/bonny/{name} was edited here: {OUTCOMES[outcome]}")
    for line in report.left:
        print(line)
    print("next: `uv sync` or pip install -e '.[dev]', then invoke lint, invoke test, and commit")


# No task has the name of a module of this package: importing the module would replace the task.
__all__ = ["check_command_line", "sandbox", *(name for name, each in globals().items() if isinstance(each, Task))]  # noqa: PLE0604
