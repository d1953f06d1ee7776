"""Sharding: replicas that share the work of one operator.

    operator = Operator(name="widgets-operator", ..., sharding=Sharding(buckets=16), deploy=Deploy(replicas=3))

You need it when one process has not enough CPU for its handlers. You do not need it for handlers that wait: raise
`max_concurrent`. See `docs/how-to/share-the-work.md`.

RBAC: get, list, watch, create, update, patch and delete of leases in the operator's namespace.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..errors import OptionError

if TYPE_CHECKING:
    from ..run.config import Config
    from ..run.process import Process

__all__ = ["Sharding"]

MOST_BUCKETS: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharding:
    """Share the objects of all controllers among the replicas. Raises: `OptionError` for an impossible number."""

    buckets: int = 16
    """Parts into which the objects are divided: a power of two, from 2 to 64; more replicas than that stand by. All
    replicas must use the same number: a change stops the work for twice a lease duration. Default 16."""

    def __post_init__(self) -> None:
        if self.buckets not in (2, 4, 8, 16, 32, MOST_BUCKETS):
            raise OptionError(f"Sharding.buckets is {self.buckets!r}: use 2, 4, 8, 16, 32 or {MOST_BUCKETS}")

    def process(self, config: Config) -> type[Process]:
        """The class that runs the operator. Without leader election one process does everything, as it always did."""
        from ..run.process import Process  # noqa: PLC0415  an operator that is only declared does not need them
        from .process import SharingProcess  # noqa: PLC0415

        return SharingProcess if config.leader_election else Process
