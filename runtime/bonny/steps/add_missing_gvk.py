"""AddMissingGVK: fills in apiVersion and kind where they are missing, as on the items of a list."""

from __future__ import annotations

from typing import Any

from ..axn import Axn


class AddMissingGVK:
    """Usage: `AddMissingGVK("apps/v1", "Deployment")`, before steps and handlers that read them.

    The runtime's own worker always sets them. For pipelines that something else runs, such as a test.
    """

    def __init__(self, api_version: str, kind: str) -> None:
        self._missing = {"apiVersion": api_version, "kind": kind}

    def __call__(self, axn: Axn[Any]) -> None:
        """Fill in what is missing; what is there stays."""
        for name, value in self._missing.items():
            axn.resource.setdefault(name, value)
