"""Extra: how namespaces that join and leave plug into an operator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ..errors import OptionError, UsageError
from ..extras import Extra, ExtraRun, Needed
from ..run.config import Config, Variable
from ..servers.watcher import Watcher
from . import NamespaceSelector

if TYPE_CHECKING:
    from ..operator import Operator
    from ..run.process import Process

NAMED: Final = "BONNY_WATCH_NAMESPACE"
LABELED: Final = "BONNY_WATCH_NAMESPACES_LABELED"
READ: Final = {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list", "watch"]}


class Namespaces(Extra):
    """Namespaces by their labels, from the code or from a variable."""

    settings = NamespaceSelector
    variables = {
        LABELED: Variable(
            "selector",
            "a selector of labels, such as team in (a,b)",
            "value in the code of the operator",
            f"Watch the namespaces with these labels, which join and leave at run time. Not beside {NAMED}.",
        )
    }

    def configured(self, config: Config, given: Mapping[str, str]) -> Config:
        if not given.get(LABELED):
            return config
        if given.get(NAMED):
            raise UsageError(f"{NAMED} and {LABELED} are both set: leave out one of them")
        return replace(config, watch_namespaces=())

    def check(self, operator: Operator) -> None:
        if not isinstance(operator.watch, NamespaceSelector):
            return
        if not operator.watch.selector.strip():
            raise OptionError(f"watch of operator {operator.name} selects all namespaces: write watch='all'")
        if getattr(operator, "sharding", None):
            raise OptionError(f"operator {operator.name} has sharding and a NamespaceSelector: leave out one of them")
        for server in operator.servers:
            kind = server.kind(operator.group)
            if issubclass(server, Watcher) and kind.namespaced and kind.namespace is None:
                raise OptionError(
                    f"{server.__name__} cannot follow namespaces that join and leave: name a namespace in its "
                    "operation, or write a controller instead"
                )

    def rules(self, operator: Operator, *, namespace: str, deployed: bool) -> Iterator[Needed]:
        if isinstance(operator.watch, NamespaceSelector):
            yield "namespaces", "", dict(READ)

    def run(self, process: Process) -> ExtraRun | None:
        if process.config.watch_namespaces != ():
            return None
        from .members import NamespacesRun

        return NamespacesRun(process, process.config.of(NamespaceSelector).selector)


EXTRA = Namespaces()
