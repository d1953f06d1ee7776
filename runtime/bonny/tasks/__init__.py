"""Tasks: what `invoke` offers in an operator repository. Each is thin: its work is done in a module of its own.

You need it in tasks.py only. Imports at the top are light, so that `invoke --list` needs nothing but invoke.
"""

from __future__ import annotations

from pathlib import Path

from invoke.context import Context
from invoke.exceptions import Exit
from invoke.tasks import task

from ..scaffold.project import Project
from . import sandbox
from .failure import in_one_sentence
from .shipping import image, install, lock, pin, uninstall

__all__ = [
    "dashboards",
    "gen_controller",
    "image",
    "install",
    "lint",
    "lock",
    "manifest",
    "pin",
    "run_locally",
    "run_tests",
    "sandbox",
    "uninstall",
]


@task(
    help={
        "kind": "name of one object, in CamelCase: Widget",
        "plural": "name of many, in lower case: widgets",
        "version": "v1, v1beta1, v2alpha1 (default v1)",
        "cluster_scoped": "its objects belong to no namespace",
        "group": "API group, if not the operator's own",
    }
)
def gen_controller(
    c: Context, kind: str, plural: str, version: str = "v1", cluster_scoped: bool = False, group: str = ""
) -> None:
    """Add a kind: its API, controller, sample and tests. With another --version: a version of it."""
    with in_one_sentence():
        from .generate import Request, generate

        request = Request(kind=kind, plural=plural, version=version, cluster_scoped=cluster_scoped, group=group)
        report = generate(Project.at(Path(c.root)), request)
    for path in report.written:
        print(f"wrote {path}")
    for note in report.notes:
        print(note)


@task(
    help={
        "image": "container image to deploy (default: that of pyproject.toml, with the version as its tag)",
        "namespace": "namespace to deploy to (default: the operator's name)",
        "out": "file to write, or - for the terminal (default manifest.yaml)",
        "local": "leave out the Deployment: the operator runs on this machine",
    }
)
def manifest(c: Context, image: str = "", namespace: str = "", out: str = "manifest.yaml", local: bool = False) -> None:
    """Write what a cluster needs to run the operator: CRDs, permissions, Deployment."""
    with in_one_sentence():
        from ..manifest import command

        project = Project.at(Path(c.root))
        text = command.render(
            project.load_operator(),
            image=image or f"{project.image}:{project.version}",
            namespace=namespace or None,
            local=local,
        )
        command.write(text, out if out == "-" else str(project.root / out))
    if out != "-":
        print(f"wrote {out}")


@task(
    help={
        "out": "folder to write to (default monitoring)",
        "job": "name of the Prometheus job that scrapes the operator (default: the operator's name)",
    }
)
def dashboards(c: Context, out: str = "monitoring", job: str = "") -> None:
    """Write alert rules for Prometheus and a dashboard for Grafana."""
    with in_one_sentence():
        from .dashboards import write

        project = Project.at(Path(c.root))
        written = write(project.root / out, job=job or project.load_operator().name)
    for path in written:
        print(f"wrote {path.relative_to(project.root) if path.is_relative_to(project.root) else path}")


@task(
    name="run-local",
    help={
        "sandbox": "start a real API server on this machine for it, and stop that afterwards",
        "namespace": "watch only this namespace (default: what operator.py says)",
        "context": "context of your kubeconfig (default: the current one)",
    },
)
def run_locally(c: Context, sandbox: bool = False, namespace: str = "", context: str = "") -> None:
    """Run the operator on this machine, with its CRDs installed first. Ctrl-C ends it."""
    with in_one_sentence():
        from .run_local import run

        run(Project.at(Path(c.root)).load_operator(), sandbox=sandbox, namespace=namespace, context=context)


@task(name="test", help={"unit": "only the quick tests, which need no API server"})
def run_tests(c: Context, unit: bool = False) -> None:
    """Run the tests; the integration tests start a real API server."""
    with in_one_sentence():
        from . import quality

        code = quality.run_tests(Path(c.root), unit=unit)
    if code:
        raise Exit(code=code)


@task
def lint(c: Context) -> None:
    """Check style and types."""
    with in_one_sentence():
        from . import quality

        code = quality.run_checks(Path(c.root))
    if code:
        raise Exit(code=code)
