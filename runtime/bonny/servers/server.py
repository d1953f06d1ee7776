"""Server: base of `Reconciler` and `Watcher`: their objects, limits and permissions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias

from ..client.api import Client
from ..engine.stream import Stream
from ..errors import OptionError
from ..kinds import Kind
from ..resource import Resource
from .periodic import PeriodicTasks

Namespaces: TypeAlias = Sequence[str | None]


class Server:
    """Calls handlers for the objects of one kind. The runtime creates an instance for each term of leadership."""

    operation: ClassVar[Kind]
    """The objects: `List("v1", "Pod", namespace="default")`. Without a namespace: where the operator watches."""

    max_concurrent: ClassVar[int] = 10
    """Handlers that run at the same time. Default 10."""

    timeout: ClassVar[float] = 60.0
    """Seconds that a handler may take. Default 60."""

    verbs: ClassVar[tuple[str, ...]] = ("list",)
    """Verbs of the kind that RBAC grants."""

    def __init__(self, client: Client, *, namespaces: Namespaces = (None,), tasks: PeriodicTasks | None = None) -> None:
        """`namespaces`: the namespaces that the operator watches; handlers register periodic tasks in `tasks`.

        Raises: `OptionError` when the class has no `operation`.
        """
        kind = self.kind()
        self.client = client
        self.tasks = tasks
        self.namespaces = namespaces if kind.namespaced and kind.namespace is None else (kind.namespace,)
        self.streams: Sequence[Stream] = ()
        """The streams of the server."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        for name in ("frequency", "max_concurrent", "timeout"):
            if not getattr(cls, name, 1) > 0:
                raise OptionError(f"{cls.__name__}.{name} is {getattr(cls, name)}: use more than 0")

    def __str__(self) -> str:
        return type(self).__name__

    async def run(self) -> None:
        """Call handlers until cancelled, or until the running handlers have ended after `stop`."""
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
        """The kind of `operation`. Raises: `OptionError` when there is none."""
        kind = getattr(cls, "operation", None)
        if not isinstance(kind, Kind):
            raise OptionError(f"{cls.__name__} has no operation: write for example operation = List('v1', 'Pod')")
        return kind

    @classmethod
    def rules(cls) -> list[Resource]:
        """RBAC rules, as a Role has them. Override it to add the permissions of your handlers."""
        return [{"apiGroups": [cls.kind().group], "resources": [cls.kind().plural], "verbs": list(cls.verbs)}]
