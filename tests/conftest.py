"""Settings and fixtures for all tests: `sandbox` from the runtime's own plugin, and operators as processes."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import Phase, settings

from bonny.run import leader
from bonny_dev.sandbox import Sandbox
from bonny_dev.sandbox.guard import Guard
from tests.support.loops import LOOPS
from tests.support.processes import OperatorProcess

pytest_plugins = ["bonny_dev.testing.plugin"]

Start = Callable[..., OperatorProcess]
# Everything in these folders needs etcd and kube-apiserver.
SERVER_FOLDERS = ("conformance", "integration", "faults")
LAST_LINES = 60
# With `pytest -n`, files go to workers in this order: what takes longest first, then all folders mixed, because some
# need CPU and others wait. Each folder is spread over such a part of the run, so that no worker ends with a long file
# while the others have nothing left.
SPREAD = {"template": 0.6, "faults": 0.8, "integration": 0.8, "conformance": 0.8, "unit": 1.0, "soak": 1.0}
LONGEST = (
    "template/test_rendered_project.py",
    "template/test_extras.py",
    "integration/test_run_local.py",
    "faults/test_streams.py",
    "conformance/test_connections.py",
    "template/test_image.py",
    "unit/test_hostile_sizes.py",
    "integration/test_workloads.py",
    "integration/test_sandbox.py",
    "faults/test_leader.py",
    "faults/test_scheduler_replicas.py",
    "integration/test_core_path.py",
    "faults/test_prove.py",
    "template/test_readme.py",
    "integration/test_deploy.py",
    "integration/test_examples.py",
    "integration/test_rendered_operator.py",
    "faults/test_pipeline.py",
    "template/test_update_runtime.py",
    "faults/test_replicas.py",
    "faults/test_webhooks.py",
    "integration/test_why.py",
    "unit/scheduler/test_server.py",
    "unit/test_event_loop.py",
    "unit/test_loop_monitor.py",
    "unit/test_webhook_memory.py",
    "unit/test_webhook_conversion.py",
    "unit/test_whole_core.py",
    "unit/test_what_user_code_raises.py",
)

# A mutant need only be noticed: the smallest example that shows it is nobody's interest (tools/mutants.py).
PHASES = (Phase.explicit, Phase.generate) if "MUTANTS" in os.environ else tuple(Phase)
# No deadline: on a busy machine an example may take its time.
COMMON = settings(deadline=None, print_blob=True, phases=PHASES)
settings.register_profile("fixed", COMMON, derandomize=True)
# `make check` takes this one: a fifth of the examples, the same in each run.
settings.register_profile("quick", COMMON, derandomize=True, max_examples=20)
# `make test-all` takes this one, with a seed that it prints.
settings.register_profile("random", COMMON, derandomize=False)
settings.load_profile("fixed")


def pytest_configure(config: pytest.Config) -> None:
    """Let tests send SIGINT to what they start, API servers collect garbage less often, the rendered projects of a
    worker share what mypy knows of their dependencies, and Python keep what it compiled.

    Regression: a shell's background job, as CI can be, ignores SIGINT, and hands that on to every child.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # A third of the CPU time of an API server's start is Go's garbage collection, and tests start many: it begins at
    # this size, which few of them reach. Those that do collect without end if what they keep is nearly as large.
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    os.environ.setdefault("GOGC", "off")
    os.environ.setdefault("GOMEMLIMIT", str(min(max(memory // 24, 600 * 2**20), 1200 * 2**20)))
    # Some machines set it, and there each of some thousand processes compiles the runtime and its packages anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    # Set, even where it is set: workers inherit it from the process that starts them, and mypy crashes now and then
    # when several of its processes write to one cache.
    worker = getattr(config, "workerinput", {}).get("workerid", "alone")
    os.environ["MYPY_CACHE_DIR"] = str(config.rootpath / ".mypy_cache" / "rendered" / worker)


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run a test on asyncio's own event loop, and on uvloop, too, where the mark `both_loops` asks for it."""
    if item.get_closest_marker("both_loops") is None:
        return {"asyncio": LOOPS["asyncio"]}
    return LOOPS


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if _path(item).parts[0] in SERVER_FOLDERS:
            item.add_marker("server")
    if hasattr(config, "workerinput"):
        ranks = _ranks(list(dict.fromkeys(map(_path, items))))
        items.sort(key=lambda item: ranks[_path(item)])


def pytest_collection() -> None:
    """Modules and tests stay to the end of the run, so garbage collection looks neither for nor at them."""
    gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def _path(item: pytest.Item) -> Path:
    return item.path.relative_to(Path(__file__).parent)


def _ranks(files: list[Path]) -> dict[Path, tuple[float, str]]:
    """The place of each file among all."""
    ranks: dict[Path, tuple[float, str]] = {}
    for folder, part in SPREAD.items():
        here = [path for path in files if path.parts[0] == folder]
        ranks |= {path: (part * number / len(here), path.as_posix()) for number, path in enumerate(here)}
    return ranks | {
        path: (LONGEST.index(name) - len(LONGEST), name) for path in files if (name := path.as_posix()) in LONGEST
    }


@pytest.fixture(autouse=True)
def _jitter_is_repeatable(request: pytest.FixtureRequest) -> None:
    """The runtime draws the same numbers in each run; others, but repeatable ones, in `make test-all`."""
    random.seed(request.config.getoption("hypothesis_seed") or 0)


@pytest.fixture(autouse=True)
def _the_end_of_a_lease_is_that_of_one_test(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Regression: where this process stood still for as long as a short lease, its watchdog ended all the tests."""
    ended: list[str] = []

    def look(watchdog: leader._Watchdog) -> None:
        if leader.clock() >= watchdog._at:
            ended.append(watchdog._line)
            watchdog.disarm()

    monkeypatch.setattr(leader._Watchdog, "_look", look)
    yield
    assert ended == []


@pytest.fixture
def start_operator(sandbox: Sandbox, tmp_path: Path) -> Iterator[Start]:
    """Starts operators; those that still run when the test ends are killed."""
    guards: list[Guard] = []
    started: list[OperatorProcess] = []

    def start(
        command: list[str], *, kubeconfig: Path | None = None, cwd: Path | None = None, **settings: str
    ) -> OperatorProcess:
        guard = Guard(tmp_path / f"operator-{len(guards)}")
        guards.append(guard)
        made = OperatorProcess(guard, command, kubeconfig=kubeconfig or sandbox.kubeconfig, cwd=cwd, settings=settings)
        started.append(made)
        return made

    yield start
    # pytest shows it beside a failure.
    for operator in started:
        print(f"--- {operator.log_file}", *operator.text.splitlines()[-LAST_LINES:], sep="\n")
    for guard in guards:
        guard.close()
