"""Tasks of the template's own repository; `make test` and CI call these. `invoke --list` shows them."""

import importlib
import os
import random
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from invoke.collection import Collection
from invoke.context import Context
from invoke.exceptions import UnexpectedExit
from invoke.runners import Promise, Runner
from invoke.tasks import call, task

ROOT = Path(__file__).resolve().parent
# Every task works from any folder, with the tools of the environment that invoke itself runs in.
os.chdir(ROOT)
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
os.environ["PYTHONPATH"] = str(ROOT / "runtime")
# Each run of the tests is the same, also in the order of sets; `test-all` searches at random.
os.environ["PYTHONHASHSEED"] = "0"
# Tests start hundreds of interpreters: without compiled modules each takes a second longer.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.path[:0] = [os.environ["PYTHONPATH"], str(ROOT)]

# Seconds between the looks of invoke at a running command; its default of 0.01 takes a hundredth of a core.
Runner.input_sleep = 0.2

CORES = os.cpu_count() or 1
# Many tests wait for most of their time: so many workers keep the cores busy. Each takes up to 1.5 GB.
WORKERS = 2 * CORES + 1

PYTHON_FILES = "runtime hooks tests tools bench examples docs/reference/examples tasks.py"


@task(help={"workloads": "also kube-controller-manager, for the tests of controllers in a sandbox"})
def fetch(c: Context, workloads: bool = False) -> None:
    """Download or build etcd and kube-apiserver; the first time takes minutes."""
    from bonny_dev.sandbox import commands  # noqa: PLC0415  for the tasks that need it

    commands.fetch(workloads=workloads)


@task
def lint(c: Context) -> None:
    """Check style, types, the direction of imports, the line budgets and the wording of texts."""
    with types_checked(c):
        check_texts(c)


@contextmanager
def types_checked(c: Context) -> Iterator[None]:
    """Check types meanwhile: it takes longest, on one core."""
    with meanwhile(c, "mypy"):
        yield


@contextmanager
def meanwhile(c: Context, command: str) -> Iterator[None]:
    """Run `command` beside the work of the caller. Raises: `UnexpectedExit` with its output, if it fails."""
    running = cast("Promise", c.run(command, echo=True, asynchronous=True))
    try:
        yield
    finally:
        running.join()


def check_texts(c: Context) -> None:
    """All of `lint` but types."""
    c.run(f"ruff check {PYTHON_FILES}", echo=True)
    c.run(f"ruff format --check {PYTHON_FILES}", echo=True)
    c.run("lint-imports", echo=True)
    c.run("python tools/lines.py", echo=True)
    c.run("python tools/handler_asserts.py", echo=True)
    c.run("python tools/words.py", echo=True)


@task
def unit(c: Context) -> None:
    """Tests with plain values and virtual time; no server."""
    spread(c, "tests/unit -m 'not slow'")


@task(pre=[lint])
def check(c: Context) -> None:
    """Lint, types and unit tests with a fifth of their random examples, to run before each commit; a minute."""
    spread(c, "tests/unit -m 'not slow' --hypothesis-profile=quick")


@task
def template(c: Context) -> None:
    """Render the template in several ways; check, install and test the results."""
    spread(c, "tests/template -m 'not slow'")


@task
def integration(c: Context) -> None:
    """Tests on a real etcd and kube-apiserver."""
    spread(c, "tests/integration -m 'not slow'")


@task
def conformance(c: Context) -> None:
    """Test the contract of a transport, on a real API server and on peers that misbehave."""
    spread(c, "tests/conformance -m 'not slow'")


@task
def faults(c: Context) -> None:
    """The fault catalogue's quick tier: an operator behind a proxy that fails on request."""
    spread(c, "tests/faults -m 'not slow'")


@task(pre=[fetch])
def test(c: Context) -> None:
    """Everything that CI runs: lint, whose types are checked beside the tests, and all tests but the slow ones."""
    # So Python and pytest compile the tests once; otherwise each worker would compile all of them.
    with meanwhile(c, "pytest --collect-only -q -m 'not slow'"):
        check_texts(c)
    with types_checked(c):
        spread(c, "-m 'not slow'")


@task(pre=[lint, call(fetch, workloads=True)])
def test_all(c: Context) -> None:
    """All tests, the slow ones too; property tests search at random, from a seed that is printed."""
    seed = os.environ["PYTHONHASHSEED"] = str(random.SystemRandom().randrange(2**32))
    options = f"--hypothesis-profile=random --hypothesis-seed={seed}"
    again = f"to repeat a failure: PYTHONHASHSEED={seed} .venv/bin/pytest {options} tests/unit/test_naming.py, say"
    print(again)
    try:
        spread(c, options)
    except UnexpectedExit:
        print(again)
        raise


def spread(c: Context, arguments: str) -> None:
    """Run pytest with several workers. Each takes whole files, and has a sandbox of its own (tests/conftest.py)."""
    command = f"pytest {arguments} -n {WORKERS} --dist loadfile --no-loadscope-reorder"
    c.run(command, echo=True, pty=sys.stdout.isatty())


@task
def demo(c: Context) -> None:
    """From an empty folder to a running operator on a real API server, step by step."""
    c.run("python tools/demo.py", pty=sys.stdout.isatty())


@task(help={"name": "a file in examples/, without .py", "workloads": "with controllers and simulated pods"})
def example(c: Context, name: str, workloads: bool = False) -> None:
    """Run an example on a real API server of its own; Ctrl-C ends it."""
    from bonny.errors import UsageError  # noqa: PLC0415  for the tasks that need it
    from bonny_dev.tasks import run_local  # noqa: PLC0415
    from bonny_dev.tasks.declaring import in_one_sentence  # noqa: PLC0415
    from bonny_dev.tasks.options import LocalRun  # noqa: PLC0415

    with in_one_sentence():
        known = sorted(path.stem for path in Path("examples").glob("*.py"))
        if name not in known:
            raise UsageError(f"there is no example {name!r}: take one of {', '.join(known)}")
        operator = importlib.import_module(f"examples.{name}").operator
        run_local.run(operator, LocalRun(sandbox=True, workloads=workloads))


@task
def bench(c: Context) -> None:
    """Measure requests, CPU and memory of an operator on a real API server, and how long large lists hold its loop."""
    c.run("python bench/creations.py", pty=sys.stdout.isatty())
    c.run("python -m bench.large_lists", pty=sys.stdout.isatty())


@task
def bench_core(c: Context) -> None:
    """Measure the watch and queue core beside kopf and, with compilers, controller-runtime and kube-rs; 75 minutes."""
    c.run("python -m bench.core", pty=sys.stdout.isatty())


@task
def bench_pipeline(c: Context) -> None:
    """Measure the whole pipeline, child and status included, beside the same three; about 75 minutes."""
    c.run("python -m bench.pipeline", pty=sys.stdout.isatty())


@task
def bench_check(c: Context) -> None:
    """Compare CPU, memory and writes with the commit in bench/check/BASELINE; about a quarter of an hour."""
    c.run("python -m bench.check", pty=sys.stdout.isatty())


@task(
    help={
        "parts": "some of throughput,cpu,received,moves,leases,large; default: all",
        "quick": "does it work? the results mean nothing",
    }
)
def bench_scale(c: Context, parts: str = "", quick: bool = False) -> None:
    """Measure replicas that share the work beside one, and 100,000 objects in one process; about 40 minutes."""
    words = [f"--workload {shlex.quote(part)}" for part in parts.split(",") if part]
    c.run(" ".join(["python -m bench.scale", *words, *(["--quick"] if quick else [])]), pty=sys.stdout.isatty())


@task
def bench_scheduler(c: Context) -> None:
    """Measure a scheduler beside kube-scheduler, 1,000 nodes and 5,000 pods; about an hour."""
    c.run("python -m bench.scheduler", pty=sys.stdout.isatty())


@task
def bench_webhooks(c: Context) -> None:
    """Measure admission webhooks beside controller-runtime; about a quarter of an hour."""
    c.run("python -m bench.webhooks", pty=sys.stdout.isatty())


@task
def mutants(c: Context) -> None:
    """Break one guarantee at a time and expect the tests to notice."""
    c.run("python tools/mutants.py", pty=sys.stdout.isatty())


@task(
    help={
        "minutes": "how long faults are injected",
        "seed": "that of an earlier run, to repeat its faults and changes",
        "objects": "how many objects the operator serves",
        "kill-operator": "kill the operator, too, now and then",
    }
)
def soak(c: Context, minutes: float = 10.0, seed: str = "", objects: int = 2000, kill_operator: bool = False) -> None:
    """Inject random faults into a running operator and check the end state."""
    words = f"--minutes {minutes} --objects {objects}"
    words += f" --seed {seed}" if seed else ""
    words += " --kill-operator" if kill_operator else ""
    c.run(f"python -m tests.soak {words}", echo=True, pty=sys.stdout.isatty())


@task
def reference(c: Context) -> None:
    """Write docs/reference and docs/configuration.md from docstrings, examples, tasks and settings."""
    c.run("python -m tools.reference")
    c.run("python -m tools.task_reference")
    c.run("python -m tools.configuration")


@task(help={"out": "the folder to build in; its html/ is the site"})
def docs(c: Context, out: str = "build/site") -> None:
    """Build the documentation as a site; a broken link fails."""
    c.run(f"python -m tools.website --out {shlex.quote(out)}", echo=True)


@task
def pictures(c: Context) -> None:
    """Draw docs/images from real terminal output."""
    c.run("python -m tools.pictures", echo=True)


@task(
    help={"version": "three numbers; without it that of the code", "dry-run": "print the release, and change nothing"}
)
def release(c: Context, version: str = "", dry_run: bool = False) -> None:
    """Move the notes of CHANGELOG.md below their version, commit that, and make the tag; nothing is pushed."""
    words = f" --version {shlex.quote(version)}" if version else ""
    done = c.run(f"python -m tools.release{words}{' --dry-run' if dry_run else ''}", warn=True)
    sys.exit(done.exited)


@task(help={"ref": "a tag, a branch or a commit", "out": "the folder to write to"})
def archive(c: Context, ref: str = "HEAD", out: str = "build") -> None:
    """Write the template as a zip for Windows, to be attached to a release."""
    done = c.run(f"python -m tools.portable --ref {shlex.quote(ref)} --out {shlex.quote(out)}", warn=True)
    sys.exit(done.exited)


@task(help={"cold": "by pip with empty caches, not by uv with full ones"})
def tutorial(c: Context, cold: bool = False) -> None:
    """Run the tutorial up to the first reconciled object, and print the time."""
    c.run(f"python -m tools.tutorial{' --cold' if cold else ''}", echo=True)


@task
def lock(c: Context) -> None:
    """Resolve requirements.lock again from pyproject.toml, and the lock of the site's generator."""
    options = "--quiet --universal --no-header --no-annotate --upgrade"
    c.run(f"uv pip compile {options} --group dev -o requirements.lock")
    c.run(f"uv pip compile {options} --generate-hashes --group docs -o docs/site/requirements.lock")


namespace = Collection(
    archive,
    bench,
    bench_check,
    bench_core,
    bench_pipeline,
    bench_scale,
    bench_scheduler,
    bench_webhooks,
    check,
    conformance,
    demo,
    docs,
    example,
    faults,
    fetch,
    integration,
    lint,
    lock,
    mutants,
    pictures,
    reference,
    release,
    soak,
    template,
    test,
    test_all,
    tutorial,
    unit,
)
