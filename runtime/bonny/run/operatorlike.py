"""OperatorLike: what a manifest is made from; `bonny.Operator` and `bonny.Controller` have this shape.

You need it to make manifests from something else, as tests do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from ..api import Version
from ..core.lease import LeaseTiming
from ..deploy import Deploy
from ..kinds import Kind, Owned, Related
from ..resource import Resource

__all__ = ["ControllerLike", "OperatorLike"]


class ControllerLike(Protocol):
    """What one controller says of the permissions that it needs."""

    @property
    def owns(self) -> tuple[Owned, ...]:
        """The kinds that it creates."""

    @property
    def related(self) -> tuple[Related, ...]:
        """The kinds of others that it follows."""

    @property
    def rules(self) -> tuple[Resource, ...]:
        """Permissions beyond those, as a Role writes them."""

    def resources(self) -> tuple[type[Version] | Kind, ...]:
        """What it handles."""

    def kinds(self, default_group: str) -> tuple[Kind, ...]:
        """The same as kinds; versions without a group are in `default_group`."""


class OperatorLike(Protocol):
    """What an operator says of itself."""

    @property
    def name(self) -> str:
        """The name of its Deployment, ServiceAccount, roles and, unless another is given, of its namespace."""

    @property
    def group(self) -> str:
        """The API group of the versions that name none."""

    @property
    def watch(self) -> str:
        """`all` namespaces, or only the `namespace` where it runs."""

    @property
    def deploy(self) -> Deploy:
        """Options of the manifest."""

    @property
    def lease(self) -> LeaseTiming:
        """How long they may take with their lease."""

    @property
    def grace(self) -> float:
        """Seconds for running handlers at the stop."""

    @property
    def controllers(self) -> Sequence[ControllerLike]:
        """Its controllers."""

    def finalizers(self, controller: Any) -> Sequence[str]:
        """The finalizers that it keeps on the objects of that controller."""

    def prunes(self, controller: Any) -> bool:
        """Whether it deletes what that controller no longer registers."""

    def rules(self) -> Iterable[tuple[str, str | None, Resource]]:
        """What its other parts may do: who, in which namespace (None: where it watches), and a rule."""

    @property
    def crds(self) -> Sequence[type[Version]]:
        """The versions of its own kinds."""
