"""Server: what `Reconciler` and `Watcher` have in common: which objects, how many at a time, with which rights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final, TypeAlias

from ..client.api import Client
from ..engine.stream import Reflector
from ..errors import OptionError
from ..kinds import Kind
from ..resource import Resource
from .periodic import PeriodicTasks

__all__ = ["EVERYWHERE", "Namespaces", "Server"]

Namespaces: TypeAlias = Sequence[str | None]
EVERYWHERE: Final[Namespaces] = (None,)


class Server:
    """Looks at the objects of one kind by itself. The runtime makes it, runs it, and ends it by cancelling `run`.

    What was stopped or cancelled is not run again: make another one.
    """

    operation: ClassVar[Kind]
    """The objects: `List("v1", "Pod", namespace="default")`. Without a namespace: where the operator watches."""

    max_concurrent: ClassVar[int] = 10
    """Objects handled at the same time. Default 10."""

    timeout: ClassVar[float] = 60.0
    """Seconds that a handler may take. Default 60."""

    verbs: ClassVar[tuple[str, ...]] = ("list",)
    """What is asked of the kind, for RBAC; a base of yours need not change it."""

    def __init__(
        self, client: Client, *, namespaces: Namespaces = EVERYWHERE, tasks: PeriodicTasks | None = None
    ) -> None:
        """`namespaces`: what the operator watches. `tasks`: where handlers register periodic tasks.

        Raises: `OptionError` when the class does not say what it looks at.
        """
        kind = self.kind()
        self.client = client
        self.tasks = tasks
        self.namespaces = namespaces if kind.namespaced and kind.namespace is None else (kind.namespace,)
        self.reflectors: Sequence[Reflector] = ()
        """The streams of the server."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        for name in ("frequency", "max_concurrent", "timeout"):
            if not getattr(cls, name, 1) > 0:
                raise OptionError(f"{cls.__name__}.{name} is {getattr(cls, name)}: use more than 0")

    def __str__(self) -> str:
        return type(self).__name__

    async def run(self) -> None:
        """Go on until cancelled, or until what is being handled has ended after `stop`."""
        raise NotImplementedError

    def stop(self) -> None:
        """Call no further handler."""
        raise NotImplementedError

    @property
    def stuck(self) -> bool:
        """Whether every slot is held by a handler that should have ended long ago."""
        raise NotImplementedError

    @classmethod
    def kind(cls) -> Kind:
        """What it looks at. Raises: `OptionError` when nothing is named."""
        kind = getattr(cls, "operation", None)
        if not isinstance(kind, Kind):
            raise OptionError(f"{cls.__name__} looks at nothing: write for example operation = List('v1', 'Pod')")
        return kind

    @classmethod
    def rules(cls) -> list[Resource]:
        """The RBAC rules that it needs, as a Role writes them. Override it to add what handlers ask for."""
        return [{"apiGroups": [cls.kind().group], "resources": [cls.kind().plural], "verbs": list(cls.verbs)}]
