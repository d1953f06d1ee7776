"""Controllers: tests that need kube-controller-manager run where it is built; `make test` does not build it."""

from __future__ import annotations

import pytest

from bonny_dev.sandbox.binaries import from_environment
from bonny_dev.sandbox.cache import lookup
from bonny_dev.sandbox.workloads import MANAGER


def controllers_are_here() -> bool:
    """Whether kube-controller-manager can be had without a download or a build."""
    return bool(from_environment(MANAGER) or lookup(MANAGER, lambda _: None))


def skip_without_controllers() -> None:
    """Skip the test where kube-controller-manager would have to be built first."""
    if not controllers_are_here():
        pytest.skip("kube-controller-manager is not built here: run `invoke fetch --workloads`")
