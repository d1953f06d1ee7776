"""Plugin: pytest fixtures for operators; a repository names it in tests/conftest.py.

    pytest_plugins = ["bonny_dev.testing.plugin"]

Guarantees: nothing is started before a test asks for it, and nothing is left when the tests end.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from ..sandbox import Sandbox
from ..uses import absent_import
from ..wheel import UNFIT, fits
from .running import RunningOperator, running


def pytest_configure(config: pytest.Config) -> None:
    if not fits(config.rootpath / "vendor" / "bonny"):
        raise pytest.UsageError(UNFIT)
    if absent := absent_import(config.rootpath):
        raise pytest.UsageError(str(absent))


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """A real etcd and kube-apiserver, shared by all tests of the session."""
    with Sandbox() as started:
        yield started


@pytest.fixture
async def running_operator(sandbox: Sandbox, pytestconfig: pytest.Config) -> AsyncIterator[RunningOperator]:
    """This repository's operator as a process of its own, with the permissions of its manifest and no others."""
    async with running(sandbox, pytestconfig.rootpath) as at_work:
        yield at_work
