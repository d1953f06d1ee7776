"""ObjectVisitor: base of `Reconciler` and `Watcher`: their objects, limits and permissions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeAlias

from typing_extensions import TypeVar

from ..api import Version
from ..api.version import version_in_brackets
from ..client.api import Client
from ..engine.stream import Stream
from ..errors import OptionError
from ..kinds import Kind
from ..lifespan import HasLifespan
from ..resource import Resource
from .periodic import PeriodicTasks

V = TypeVar("V", bound=Version, default=Any)

Namespaces: TypeAlias = Sequence[str | None]


class ObjectVisitor(HasLifespan, Generic[V]):
    """Calls handlers for the objects of one kind. The runtime creates an instance for each term of leadership."""

    operation: ClassVar[Kind | type[Version]]
    """The objects: `List("v1", "Pod", namespace="default")`, or a version class. Default: the version class in
    brackets, as in `Reconciler[Widget]`. Without a namespace: of all namespaces that the operator watches."""

    max_concurrent: ClassVar[int] = 10
    """Handlers that run at the same time. Default 10."""

    timeout: ClassVar[float] = 60.0
    """Seconds that a handler may take. Default 60."""

    rules: ClassVar[tuple[Resource, ...]] = ()
    """RBAC rules of your handlers' requests, as a Role writes them. Default: none beyond `verbs`."""

    verbs: ClassVar[tuple[str, ...]] = ("list",)
    """Verbs of the kind that RBAC grants."""

    def __init__(self, client: Client, *, namespaces: Namespaces = (None,), tasks: PeriodicTasks | None = None) -> None:
        """`namespaces`: the namespaces that the operator watches; handlers register periodic tasks in `tasks`.

        Raises: `OptionError` when the class has no `operation`.
        """
        self._kind = kind = self.kind(client.group)
        self.client = client
        self.tasks = tasks
        self.namespaces = namespaces if kind.namespaced and kind.namespace is None else (kind.namespace,)
        self.streams: Sequence[Stream] = ()
        """Its streams."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        # Only this class's own brackets: __init_subclass__ ran for each base before.
        version = version_in_brackets(cls, ObjectVisitor)
        if version and "operation" not in vars(cls):
            cls.operation = version

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
    def kind(cls, default_group: str = "") -> Kind:
        """The kind of `operation`; `default_group` is the operator's. Raises: `OptionError` when there is none."""
        operation = getattr(cls, "operation", None)
        if isinstance(operation, type) and issubclass(operation, Version):
            return operation.as_kind(default_group)
        if not isinstance(operation, Kind):
            raise OptionError(f"{cls.__name__} has no operation: write for example operation = List('v1', 'Pod')")
        return operation

    @classmethod
    def all_rules(cls, default_group: str = "") -> list[Resource]:
        """The RBAC rules that it needs: `verbs` of its kind, and `rules`. Raises: as `kind`."""
        kind = cls.kind(default_group)
        return [{"apiGroups": [kind.group], "resources": [kind.plural], "verbs": list(cls.verbs)}, *cls.rules]
