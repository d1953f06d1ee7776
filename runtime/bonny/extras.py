"""Extras: optional packages of the runtime; a repository carries the ones that it uses, as `invoke extras` shows.

You need it to write an extra: a package whose module `extra` holds `EXTRA`, an `Extra`. You do not need it to use one:
import from its package.

The core imports no extra by name. It asks the extras that are present what they add.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from .carried import PACKAGE, MissingExtra, is_present, listed, package_of
from .resource import Resource

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from .engine.stream import Stream
    from .lifespan import HasLifespan
    from .operator import Operator
    from .run.config import Config, Variable
    from .run.process import Process
    from .run.streams import Streams
    from .run.supervisor import Runnable, Stoppable

Needed: TypeAlias = tuple[str, str | None, Resource]
"""An RBAC rule: the name of what needs it; its namespace, None for where the operator watches, empty for all; and the
rule, as a Role writes it."""


class Part:
    """Base of the classes that an extra serves. `discover` finds them; `Operator(controllers=...)` takes them."""

    extra: ClassVar[str]
    """The name of the extra."""

    @classmethod
    def is_complete(cls) -> bool:
        """Whether the class can be served; `discover` leaves out the others, which are bases."""
        return True


class Declaration:
    """Base of objects that an extra adds to the manifest. `discover` finds them; `Operator(crds=...)` takes them."""

    extra: ClassVar[str]
    name: str


class NamespaceChoice:
    """Base of an extra's choice of namespaces, which may change at run time: `Operator(watch=...)`."""

    streams: type[Streams]
    """The streams of a process whose namespaces change."""


class ExtraRun:
    """The part of an extra in one run of the process. The base does nothing."""

    lifespans: Sequence[HasLifespan] = ()
    """Parts whose lifespans are entered before `serving`."""

    streams: Sequence[Stream] = ()
    """Streams that it runs itself, for the probes."""

    lasting: Sequence[Runnable] = ()
    """Parts that run from the start until the process stops, also on a standby."""

    replaces_metrics: bool = False
    """Whether it serves /metrics, which is then not served beside the probes."""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Surround the run, from before the first list until work has ended. Raises: `UsageError`."""
        yield

    def term(self) -> Iterable[Stoppable]:
        """New parts for one term of this replica as the leader."""
        return ()

    def relisted(self) -> Iterable[Stream]:
        """Streams that a new leader lists again before its term begins."""
        return ()

    async def drain(self) -> None:
        """Called after SIGTERM; work begins to stop when it returns."""

    def started(self) -> Mapping[str, object]:
        """Fields for the log line `started`."""
        return {}

    def problems(self) -> tuple[Sequence[str], Sequence[str]]:
        """Lines for /readyz: notes, and lines that make it red."""
        return (), ()

    def families(self) -> Iterable[Metric]:
        """Its metrics."""
        return ()


class Extra:
    """The additions of an extra to operators. The base adds nothing."""

    settings: type[Any] | None = None
    """A frozen dataclass of its settings, for `Config.of`."""

    variables: Mapping[str, Variable] = MappingProxyType({})
    """The environment variables of its settings, by name."""

    honoured: Mapping[str, str] = MappingProxyType({})
    """Environment variables of other tools that have an effect, with a sentence each."""

    def configured(self, config: Config, given: Mapping[str, str]) -> Config:
        """The settings that `config` and the variables `given` mean together. Raises: `UsageError`."""
        return config

    def check(self, operator: Operator) -> None:
        """Raises: `OptionError` when its parts do not fit the operator."""

    def rules(self, operator: Operator, *, namespace: str, deployed: bool) -> Iterable[Needed]:
        """RBAC rules for an operator in `namespace`. One that is not `deployed` is out of the API server's reach."""
        return ()

    def run(self, process: Process) -> ExtraRun | None:
        """Its part in a run of `process`, whose streams do not run yet; None if this operator does not use it."""
        return None


@cache
def present() -> dict[str, Extra]:
    """The extras in this repository that can act by themselves: by an option or a variable."""
    return {name: _extra(name) for name, each in listed().items() if (each.option or each.variables) and _acts(name)}


def of_operator(operator: Operator) -> Iterable[Extra]:
    """The extras that may add something to this operator; others are not loaded."""
    by_parts = dict.fromkeys(part.extra for part in operator.parts)
    return {**present(), **{name: _extra(name) for name in by_parts if _acts(name)}}.values()


def _acts(name: str) -> bool:
    """Whether it is present, and plugs into operators."""
    return is_present(name) and (PACKAGE / package_of(name) / "extra.py").is_file()


def _extra(name: str) -> Extra:
    found: Extra = importlib.import_module(f".{package_of(name)}.extra", __package__).EXTRA
    return found


def check_options(operator: Operator) -> None:
    """Raises: `MissingExtra` when an option of the operator needs an extra that is not present."""
    for name, extra in listed().items():
        if extra.option and not is_present(name) and attrgetter(extra.option)(operator):
            raise MissingExtra(extra.use, name)
