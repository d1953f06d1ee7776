"""Plugin: pytest fixtures for operators; a repository names it in tests/conftest.py.

    pytest_plugins = ["bonny_dev.testing.plugin"]

Guarantees: nothing is started before a test needs it, and nothing is left when the tests end.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import nullcontext

import pytest

from ..sandbox import Sandbox
from ..sandbox.workloads import Workloads
from ..uses import absent_import
from ..wheel import UNFIT, fits
from .running import RunningOperator, running


def pytest_configure(config: pytest.Config) -> None:
    """Raises: `pytest.UsageError` when the tools are of another version than vendor/bonny, or an extra is absent."""
    if not fits(config.rootpath / "vendor" / "bonny"):
        raise pytest.UsageError(UNFIT)
    if absent := absent_import(config.rootpath):
        raise pytest.UsageError(str(absent))


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """A real etcd and kube-apiserver, shared by all tests of the session."""
    with Sandbox() as started:
        yield started


@pytest.fixture(scope="module")
def _controllers(sandbox: Sandbox, pytestconfig: pytest.Config) -> Iterator[Workloads]:
    """Controllers and simulated kubelets beside the sandbox, until the last test of the module has ended."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")

    def say(line: str) -> None:
        """The first time, a program is downloaded or built, which takes minutes."""
        with capture.global_and_fixture_disabled() if capture else nullcontext():
            print(line, flush=True)

    yield sandbox.start_workloads(say)
    sandbox.stop_workloads()


@pytest.fixture
def workloads(_controllers: Workloads) -> Iterator[Workloads]:
    """Controllers and simulated kubelets: Deployments become Available, children are collected, namespaces end.

    They run for the rest of the module, also beside tests without this fixture; the simulations of a test end with it.
    """
    yield _controllers
    _controllers.reset()


@pytest.fixture
async def running_operator(sandbox: Sandbox, pytestconfig: pytest.Config) -> AsyncIterator[RunningOperator]:
    """This repository's operator as a process of its own, with the permissions of its manifest and no others."""
    async with running(sandbox, pytestconfig.rootpath) as at_work:
        yield at_work
