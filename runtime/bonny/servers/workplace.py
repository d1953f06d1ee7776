"""Workplace: what the handling of one object may use of the running operator; what steps see as `axn.workplace`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..axn import Observation
from ..client.api import Client
from ..core.ledger import Witness
from ..errors import OptionError
from ..kinds import Kind, Owned
from ..resource import Key, Resource, identify, key_of
from .intake import Intake

__all__ = ["Desk"]


class Desk:
    """The workplace for one key of one controller."""

    def __init__(self, *, operator: str, manager: str, client: Client, intake: Intake, key: Key) -> None:
        self.operator = operator
        self.manager = manager
        self.client = client
        self.owns: Sequence[Owned] = intake.owns
        self.witnesses: dict[tuple[Kind, Key], Witness] = intake.ledger.witnesses.setdefault(key, {})
        self.wrote = False
        """Whether anything was written so far, as far as it is known here."""

        self._intake = intake
        self._key = key

    def observe(self, kind: Kind, key: Key) -> Observation:
        """What the stores know of an owned object; "not known" while its stream is not in sync."""
        source = self._intake.source(kind, key)
        if source is None:
            return Observation(known=False, item=None)
        return Observation(known=source.synced and source.trouble is None, item=source.store.get(key))

    def observed(self, descendant: Mapping[str, Any]) -> Resource | None:
        """The live object of the kind and name of `descendant`. Raises: `OptionError` when its kind is not owned."""
        for kind in self.owns:
            name = key_of(descendant)
            same = (kind.api_version, kind.kind) == (descendant["apiVersion"], descendant["kind"])
            if same and kind.namespace in (None, name.namespace):
                item = self.observe(kind, name if kind.namespaced else Key("", name.name)).item
                return None if item is None else {**item.decode(), "apiVersion": kind.api_version, "kind": kind.kind}
        raise OptionError(f"{identify(descendant)} cannot be observed: name its kind in the controller's `owns`")

    @property
    def up_to_date(self) -> bool:
        """Whether the stream of the handled object shows what the server shows."""
        return self._intake.home(self._key).current

    def contested(self, kind: Kind, key: Key) -> None:
        """The name is taken by an object that is not ours: when that changes, the handled object is run again."""
        self._intake.contest(kind, key, owner=self._key)

    @contextmanager
    def writing(self, kind: Kind, key: Key) -> Iterator[Callable[[str], None]]:
        """Lets the intake recognise the event of this write, and the key wait until it was seen."""
        self._intake.begin_write(kind, key, owner=self._key)
        made: list[str] = []
        try:
            yield made.append
        finally:
            self.wrote = self.wrote or bool(made)
            self._intake.end_write(kind, key, made[-1] if made else None, owner=self._key)
