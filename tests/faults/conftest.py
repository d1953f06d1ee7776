"""What every row of the fault catalogue has: a scene, and a line that runs it again when it failed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from tests.conftest import Start
from tests.faults.flood import Flood, flooding
from tests.faults.scene import GROUP, Scene, behind_a_proxy
from tests.support.handwritten import operator
from tests.support.rerun import pytest_runtest_makereport

__all__ = ["pytest_runtest_makereport"]

COLLECTIONS = (
    f"/apis/{GROUP}/v1/namespaces/default/widgets",
    f"/apis/{GROUP}/v1/regions",
    "/api/v1/namespaces/default/configmaps",
)


@pytest.fixture(autouse=True, scope="module")
def _served(sandbox: Sandbox) -> None:
    sandbox.apply(crds(operator.crds, GROUP))


@pytest.fixture
def clean(sandbox: Sandbox) -> Iterator[None]:
    """What is made in the namespace `default` meanwhile is removed afterwards."""
    yield
    for path in COLLECTIONS:
        sandbox.request("DELETE", path)


@pytest.fixture
def scene(sandbox: Sandbox, start_operator: Start, clean: None) -> Iterator[Scene]:
    """The hand-written operator behind a proxy."""
    with behind_a_proxy(sandbox, start_operator) as made:
        yield made


@pytest.fixture
def flood(sandbox: Sandbox, start_operator: Start) -> Iterator[Flood]:
    """The operator for floods behind a proxy."""
    with flooding(sandbox, start_operator) as made:
        yield made
