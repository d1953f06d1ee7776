"""Apply order: which descendants may be applied, and which wait for others that are not ready.

An object that waits is not created, and a change of what is wanted of it is not applied. Drift is corrected: an object
that was applied before as it is registered now is put back. So an unready database neither stops the repair of its
application, nor lets a new version of the application through before its migration.

Readiness is judged by what the watch shows. A stream that is not in sync is not believed, nor an object that is older
than our last write to it; the owner is queued again when the watch shows more.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Final, TypeAlias

from ..core.objects import Item, version_number
from ..core.ordering import Descendant, ObjectName
from ..engine.reconcile import Reconcile
from ..kinds import Owned
from ..resource import Key, Resource

HELD: Final = "Held"

Outcome: TypeAlias = tuple[Owned, Key, str | None]
"""Kind and key of a descendant that had its turn, and what became of it; None if the cluster had it already."""


class ApplyOrder:
    """The descendants of one reconcile that had their turn."""

    def __init__(self, axn: Reconcile[Any]) -> None:
        self._axn = axn
        self._outcomes: dict[ObjectName, Outcome] = {}
        self.awaited: dict[str, None] = {}
        """The objects that others wait for, without the objects that wait themselves."""

    def unready(self, descendant: Descendant) -> list[ObjectName]:
        """The objects before `descendant` that are not ready. Raises: what `when` raises."""
        return [name for name in descendant.after if not self._is_ready(*self._outcomes[name], descendant.when)]

    def note(self, descendant: Descendant, outcome: Outcome, *, unready: list[ObjectName]) -> None:
        """`descendant` had its turn while the objects `unready` were not ready."""
        self._outcomes[descendant.name] = outcome
        for name in unready if outcome[2] == HELD else ():
            before = self._outcomes[name][2]
            if before != HELD:
                self.awaited[str(name)] = None
                # Our own write does not wake the owner, but it can be what makes the object ready.
                self._axn.outdated |= before is not None

    def _is_ready(self, kind: Owned, key: Key, outcome: str | None, when: Callable[[Resource], bool] | None) -> bool:
        if when is None or outcome == HELD:
            return outcome != HELD
        item, record = self._shown.get((kind.gvk, key)), self._axn.context.applied_records.get((kind, key))
        if item is None or (record is not None and item.version < version_number(record.version)):
            return False
        return when({**item.decode(), "apiVersion": kind.api_version, "kind": kind.kind})

    @cached_property
    def _shown(self) -> dict[tuple[tuple[str, str], Key], Item]:
        """The children as the watch shows them, by API version and kind, as several declarations of one kind may show
        a child; none while a stream is not in sync."""
        return {(kind.gvk, item.key): item for kind, item in self._axn.context.children(self._axn.uid) or ()}
