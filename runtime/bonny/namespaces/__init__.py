"""Namespaces: an operator that watches the namespaces with certain labels; they join and leave while it runs.

    operator = Operator(..., watch=NamespaceSelector("team in (a,b)"))

You need it where a team, or a label, decides about the namespaces of an operator. You do not need it for a fixed list:
`Operator(watch=("team-a", "team-b"))`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..core.selector import requirements_of
from ..extras import NamespaceChoice
from .streams import NamespaceStreams


@dataclass(frozen=True, slots=True)
class NamespaceSelector(NamespaceChoice):
    """Watch the namespaces whose labels fit.

    A namespace that gets the labels joins: its objects are handled as after a start, `add` included. A namespace that
    loses them leaves: handlers that run end, then its objects are forgotten. Nothing in it is changed or deleted, no
    `delete` is called, and finalizers stay: an object that is deleted while its namespace is outside stays until the
    namespace joins again. A namespace that is deleted is followed to its end.
    Raises: `OptionError` for a selector that the API server would refuse.
    RBAC: get, list and watch of namespaces; and the rules of the operator in all of them (`invoke manifest`).
    """

    selector: str = ""
    """Labels of namespaces, in the syntax of the API: `team in (a,b),!archived`."""

    streams = NamespaceStreams

    def __post_init__(self) -> None:
        requirements_of(self.selector)
