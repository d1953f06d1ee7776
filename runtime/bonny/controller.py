"""Controller: reconciles the objects of a kind; the one class that users write.

You write a subclass with `reconcile`, name your version class in brackets, and list in `owns` the kinds that it makes:

    class WidgetController(Controller[Widget]):
        owns = (Owned("v1", "ConfigMap"),)

        async def reconcile(self, axn: Axn[Widget]) -> None:
            axn.register_descendant(...)

`related` names kinds that the objects refer to without owning them, and `finalize` cleans up outside of Kubernetes.
Handlers may be `async def` (on the event loop) or `def` (in a thread). They are called again after a crash, a restart
or a failure, so they declare the desired state instead of the next action.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic

from pydantic import BaseModel
from typing_extensions import TypeVar

from .api import Version
from .api.names_kinds import NamesKinds
from .api.reading import read
from .axn import Axn
from .core.queue import Queue
from .core.records import Action
from .engine.reconcile import Reconcile, Step
from .errors import OptionError
from .kinds import Kind, Owned, Related
from .lifespan import HasLifespan
from .naming import check_finalizer, check_tuple, kebab_case
from .resource import Key, Resource

V_co = TypeVar("V_co", covariant=True)
if TYPE_CHECKING:
    # The axn of the handlers: handlers of a subclass may take another class of it (`axn_class`).
    Axn_co = TypeVar("Axn_co", bound=Axn[Any], covariant=True, default=Axn[V_co])
else:  # a default with a variable would have to stand in the brackets of a generic subclass
    Axn_co = TypeVar("Axn_co", covariant=True, default=Any)
C = TypeVar("C", bound="Controller[Any]")

# As controller-runtime's SyncPeriod: for state outside Kubernetes; changes inside are seen at once.
RECONCILE_EVERY = 36_000.0


class Restart(StrEnum):
    """When a controller that ended is started again, a second later. Failures of handlers are always tried again."""

    PERMANENT = "permanent"
    """Always: after a failure, and when it ended by itself."""

    TRANSIENT = "transient"
    """After a failure only; a controller that ended by itself stays ended."""

    TEMPORARY = "temporary"
    """Never. /readyz turns red when the controller failed."""


class Controller(NamesKinds, HasLifespan, Generic[V_co, Axn_co]):
    """Reconciles the objects of one or several kinds. One instance serves all of them.

    Guarantees: an object is never reconciled twice at the same time; a failed reconcile is retried with exponential
    backoff and does not delay other objects.
    """

    resource: ClassVar[type[Version] | Kind | tuple[type[Version] | Kind, ...]] = ()
    """The kinds that it reconciles. Default: the version class in brackets."""

    owns: ClassVar[tuple[Owned, ...]] = ()
    """The kinds of its descendants: watched for drift, granted in RBAC."""

    related: ClassVar[tuple[Related, ...]] = ()
    """Kinds that handled objects refer to but do not own; a change triggers a reconcile. `axn.observed` shows them."""

    steps: ClassVar[tuple[Step, ...]] = ()
    """Steps before the handler, run by `DelegateToController`. A step that halts ends the whole pipeline."""

    namespace: ClassVar[str | None] = None
    """Reconcile only objects of this namespace. Default: the namespaces that the operator watches."""

    schema: ClassVar[type[BaseModel] | None] = None
    """A pydantic model that validates whole objects before a handler runs, for kinds without a version class."""

    finalizer: ClassVar[str] = ""
    """The name of the finalizer for `finalize`. Default: `<operator>.<group>/<this class in kebab-case>`. Set the
    old name when you rename the class: objects that carry it cannot be deleted without it."""

    rules: ClassVar[tuple[Resource, ...]] = ()
    """RBAC rules beyond those of `resource` and `owns`, as a Role writes them."""

    options: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """Handlers see them as `self.options`, steps as `axn.controller.options`."""

    reconcile_every: ClassVar[float] = RECONCILE_EVERY
    """Seconds after which an unchanged object is reconciled again (resync). Default 10 h, minus up to 10 % jitter per
    object to avoid a thundering herd after a restart."""

    max_concurrent: ClassVar[int] = 10
    """Maximum concurrent reconciles. Default 10."""

    timeout: ClassVar[float] = 60.0
    """Seconds that a handler may take. Default 60."""

    restart: ClassVar[Restart | str] = Restart.PERMANENT
    """When it is started again after it failed outside of its handlers or ended by itself. Default `permanent`."""

    shutdown_timeout: ClassVar[float | None] = None
    """Seconds that running handlers get at shutdown, 0 for none. Default: the operator's whole grace period."""

    on_status: ClassVar[bool] = False
    """Whether a change of only the status triggers a reconcile. Default False."""

    axn_class: ClassVar[type[Reconcile[Any]]] = Reconcile
    """The class of the axns that handlers and steps get. Default: `bonny.steps.Reconcile`, an `Axn`."""

    # --- methods to define ---
    # Typed so that both an `async def` and a `def` fit as what overrides them.

    def reconcile(self, axn: Axn_co) -> Awaitable[None] | None:  # type: ignore[misc]
        """Register the desired state of the object. Called for `reconcile`, and for `add` and `modify` by default."""
        raise NotImplementedError

    def add(self, axn: Axn_co) -> Awaitable[None] | None:  # type: ignore[misc]
        """The object is new, or new to this process. Default: `reconcile`."""
        raise NotImplementedError

    def modify(self, axn: Axn_co) -> Awaitable[None] | None:  # type: ignore[misc]
        """The object changed. Default: `reconcile`."""
        raise NotImplementedError

    def finalize(self, axn: Axn_co) -> Awaitable[None] | None:  # type: ignore[misc]
        """The object is being deleted: clean up outside of Kubernetes, which removes it after this returned.

        Children are deleted afterwards, so do not wait here until one is gone. Defining it adds a finalizer to each
        object before anything is created for it. It may be called again, for example after a crash; raise
        `Wait(..., after=10)` while the clean-up is incomplete.
        """
        raise NotImplementedError

    def delete(self, axn: Axn_co) -> Awaitable[None] | None:  # type: ignore[misc]
        """The object is gone; `axn.resource` is its last known state. Not called while no replica runs."""
        raise NotImplementedError

    # --- variants ---

    @classmethod
    def configured(cls: type[C], **attributes: Any) -> type[C]:
        """This controller with other class attributes, and its name: `Operator(controllers=[Pods.configured(...)])`.

        Raises: `OptionError` for an attribute that controllers do not have, or an impossible value.
        """
        for name in attributes:
            if not hasattr(cls, name):
                raise OptionError(f"{cls.__name__}.configured({name}=...): controllers have no such attribute")
        return type(cls.__name__, (cls,), {"__module__": cls.__module__, "__doc__": cls.__doc__, **attributes})

    # --- called by the runtime ---

    _without_kinds = "handles nothing: write Controller[YourVersion]"

    @classmethod
    def _check(cls) -> None:
        check_tuple(cls.__name__, "owns", cls.owns, Owned, 'Owned("v1", "ConfigMap")')
        check_tuple(cls.__name__, "related", cls.related, Related, 'Related("v1", "Secret", named_by=...)')
        if cls.restart not in set(Restart):
            raise OptionError(f"{cls.__name__}.restart is {cls.restart!r}: use {', '.join(Restart)}")
        if cls.shutdown_timeout is not None and not cls.shutdown_timeout >= 0:
            raise OptionError(f"{cls.__name__}.shutdown_timeout is {cls.shutdown_timeout}: use 0 or more seconds")
        if cls.finalizer:
            check_finalizer(cls.finalizer)

    @classmethod
    def kinds(cls, default_group: str) -> tuple[Kind, ...]:
        kinds = super().kinds(default_group)
        return tuple(replace(kind, namespace=cls.namespace) if cls.namespace else kind for kind in kinds)

    @classmethod
    def handles(cls, action: Action) -> bool:
        """Whether a handler for `action` is defined."""
        own = _defined(cls, action.value)
        return own or (action in (Action.ADD, Action.MODIFY) and _defined(cls, "reconcile"))

    @cached_property
    def queues(self) -> list[Queue[Key]]:
        """The workqueues of its kinds, which `Throttled` pauses together."""
        return []

    @cached_property
    def handlers_by_action(self) -> Mapping[Action, Callable[[Any], Awaitable[None] | None]]:
        """The method of each action that is handled, without `finalize`: the step `Finalizer` calls that."""
        own = {Action.ADD: self.add, Action.MODIFY: self.modify, Action.DELETE: self.delete}
        handled = [action for action in Action if action is not Action.FINALIZE and self.handles(action)]
        return {each: self.reconcile if self.falls_back(each) else own.get(each, self.reconcile) for each in handled}

    @classmethod
    def finalizes(cls) -> bool:
        """Whether `finalize` is defined."""
        return _defined(cls, "finalize")

    @classmethod
    def prunes(cls) -> bool:
        """Whether `reconcile` registers all descendants for every action. With handlers for `add` or `modify`, each
        would prune the descendants of the others."""
        return _defined(cls, "reconcile") and not (_defined(cls, "add") or _defined(cls, "modify"))

    @classmethod
    def finalizer_of(cls, *, operator: str, group: str) -> str:
        """The name of its finalizer in this operator."""
        return cls.finalizer or f"{operator}.{group}/{kebab_case(cls.__name__)}"

    @classmethod
    def validate(cls, resource: Resource) -> None:
        """Raises: `InvalidObject` naming the fields of `resource` that do not fit `schema`."""
        if cls.schema is not None:
            read(cls.schema, resource, where="object")

    @classmethod
    def falls_back(cls, action: Action) -> bool:
        """Whether `action` is handled by `reconcile`."""
        return not _defined(cls, action.value)

    @classmethod
    def event_action(cls, action: Action) -> str:
        """The action of events that are about a handler: its name, such as `Reconcile`.

        A new object is handled as `add`, and again for its children: equal events of the two are counted as one.
        """
        changed = action in (Action.ADD, Action.MODIFY)
        return "Reconcile" if changed and cls.falls_back(action) else action.capitalize()


def _defined(controller: type[Controller[Any]], name: str) -> bool:
    return getattr(controller, name) is not getattr(Controller, name)
