"""Operator: the declaration of the parts that one process serves; `bonny.run.process` runs it.

operator = Operator(
    name="widgets-operator", group="example.com", controllers=discover(controllers), crds=discover(api)
)
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from .api import Version
from .api.conversion import converted
from .controller import Controller
from .core.lease import LeaseTiming
from .core.watch import WatchOptions
from .deploy import Deploy
from .engine.reconcile import Step
from .errors import OptionError
from .events import EVENT, EVENT_VERBS
from .extras import Declaration, NamespaceChoice, Part, check_options, of_operator
from .lifespan import HasLifespan
from .naming import check_dns_label, is_object_name, is_subdomain
from .resource import Resource
from .servers.periodic import PeriodicTask
from .servers.visitor import ObjectVisitor
from .steps import PruneDescendants, default_steps
from .steps.finalizer import finalizers_of

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

EVENTS: Final[Resource] = {"apiGroups": [EVENT.group], "resources": [EVENT.plural], "verbs": list(EVENT_VERBS)}

LONGEST_GRACE: Final = 3600.0
"""Seconds; no pod is given longer to end."""

Servable: TypeAlias = (
    type[Controller[Any]] | type[ObjectVisitor] | type[Part] | type[Version] | Declaration | PeriodicTask
)
"""Anything that `discover` returns."""

P = TypeVar("P")


class Operator:
    """The declaration of an operator: `python -m <package> run` serves it, `invoke manifest` deploys it.

    Raises: `UsageError` for a name that Kubernetes does not accept; `OptionError` for an impossible option. Each task
    of the developer tools that loads the operator refuses parts that do not fit together.
    """

    def __init__(
        self,
        *,
        name: str,
        group: str,
        controllers: Iterable[Servable] = (),
        crds: Iterable[type[Version] | Declaration] = (),
        steps: Sequence[Step] | None = None,
        watch: str | Iterable[str] | NamespaceChoice = "all",
        watch_options: WatchOptions | None = None,
        lease: LeaseTiming | None = None,
        grace: float = 25.0,
        deploy: Deploy | None = None,
        version: str = "",
        tracing: TracerProvider | None = None,
        sharding: Any = None,
    ) -> None:
        self.name: str = check_dns_label(name, "valid operator name")
        """Name of the Deployment, the Lease and the field managers: a DNS label."""

        self.group: str = _checked_group(name, group)
        """API group of the versions that name none."""

        parts = tuple(controllers)
        classes = dict.fromkeys(part for part in parts if isinstance(part, type))
        self.controllers: tuple[type[Controller[Any]], ...] = tuple(
            part for part in classes if issubclass(part, Controller)
        )
        """The controllers. The argument may also hold reconcilers, watchers, classes of extras, versions and periodic
        tasks, in any order, as `discover` returns them."""

        self.parts: tuple[type[Part], ...] = tuple(part for part in classes if issubclass(part, Part))
        """The classes among `controllers` that extras serve; `of` selects some."""

        self.servers = tuple(part for part in classes if issubclass(part, ObjectVisitor))
        self.tasks = tuple(part for part in parts if isinstance(part, PeriodicTask))
        versions = [part for part in classes if issubclass(part, Version)]
        served = (*self.controllers, *self.servers, *self.parts, *self.tasks, *versions)
        for part in parts:
            if part not in served and not isinstance(part, Declaration):
                raise OptionError(
                    f"operator {name} cannot serve {part!r}: name classes of controllers, reconcilers, watchers or "
                    "extras, and periodic tasks"
                )
        handled = [resource for controller in self.controllers for resource in controller.resources()]
        self.crds: tuple[type[Version], ...] = tuple(
            dict.fromkeys(each for each in (*crds, *versions, *handled) if isinstance(each, type))
        )
        """The versions of the operator's own kinds; versions of the controllers are added."""

        declared = {id(part): part for part in (*parts, *crds) if isinstance(part, Declaration)}
        self.declarations: tuple[Declaration, ...] = tuple(declared.values())
        """Objects of extras for the manifest, such as admission policies, from `controllers` and `crds`."""

        self.steps: tuple[Step, ...] = tuple(default_steps() if steps is None else steps)
        """The pipeline of every reconcile. Default: `default_steps()`."""

        self.watch: str | tuple[str, ...] | NamespaceChoice = _checked_watch(name, watch)
        """The namespaces to watch: "all"; only the "namespace" in which the operator runs; a list of names; or
        `bonny.namespaces.NamespaceSelector`, by their labels. Default "all"."""

        self.watch_options: WatchOptions = watch_options or WatchOptions()
        """How kinds are listed and watched. Use shorter timeouts where a load balancer cuts idle connections sooner."""

        self.lease: LeaseTiming = lease or LeaseTiming()
        """Times of the leader election. Default: another replica takes over 15 s after the leader died."""

        if not _is_grace(grace):
            raise OptionError(f"grace of operator {name} is {grace!r}: use 0 to {LONGEST_GRACE:.0f} seconds")
        self.grace: float = grace
        """Seconds that running handlers get after SIGTERM. Default 25; the manifest's grace period includes it."""

        self.deploy: Deploy = deploy or Deploy()
        """How the manifest runs the operator: replicas, labels, changes of your own. Default: one replica."""

        self.version: str = _checked_version(name, version) if version else _installed_version(name)
        """Part of the User-Agent and of traces. Default: the version of the installed distribution of this name."""

        self.tracing: TracerProvider | None = tracing
        """The OpenTelemetry provider of spans. Default: that of the process, or one that OTEL_ variables ask for."""

        self.sharding: Any = sharding
        """A `Sharding` if replicas share the work."""

        for extra in of_operator(self):
            extra.check(self)
        check_options(self)

    def of(self, base: type[P]) -> tuple[type[P], ...]:
        """The classes among `parts` that are made from `base`."""
        return tuple(part for part in self.parts if issubclass(part, base))

    @cached_property
    def converted(self) -> tuple[type[Version], ...]:
        """The hubs of kinds whose versions differ in fields: the API server lets the operator convert objects."""
        return converted(self.crds)

    @property
    def opened(self) -> tuple[type[HasLifespan], ...]:
        """The classes with a `lifespan`."""
        classes = (*self.controllers, *self.servers, *self.of(HasLifespan))
        return tuple(each for each in classes if each.lifespan is not HasLifespan.lifespan)

    def outside(self, name: str, namespace: str) -> str:
        """The name of an object that is not in the `namespace` of the operator.

        An operator with `watch="namespace"` may be installed once in each namespace, so the name has the namespace in
        it.
        """
        return f"{name}.{namespace}" if self.namespaced else name

    @property
    def namespaced(self) -> bool:
        """Whether it watches only the namespace in which it runs."""
        return self.watch == "namespace"

    def watched(self, namespace: str) -> tuple[str, ...] | None:
        """The namespaces that it watches when it runs in `namespace`; None: all; empty: they join while it runs."""
        if isinstance(self.watch, str):
            return (namespace,) if self.namespaced else None
        return self.watch if isinstance(self.watch, tuple) else ()

    def finalizers(self, controller: type[Controller[Any]]) -> tuple[str, ...]:
        """The finalizers that it keeps on the objects of that controller."""
        return finalizers_of(controller, self.steps, operator=self.name, group=self.group)

    def prunes(self, controller: type[Controller[Any]]) -> bool:
        """Whether it deletes children that the controller no longer registers."""
        return controller.prunes() and any(isinstance(step, PruneDescendants) for step in self.steps)

    @property
    def user_agent(self) -> str:
        """Name and version, for the API server."""
        return f"{self.name}/{self.version}"


def _checked_group(name: str, group: str) -> str:
    if not (is_subdomain(group) and "." in group):
        raise OptionError(f"group of operator {name} is {group[:60]!r}: use a domain name that you own: example.com")
    return group


def _checked_watch(name: str, watch: object) -> str | tuple[str, ...] | NamespaceChoice:
    if watch in ("all", "namespace") or isinstance(watch, NamespaceChoice):
        return watch
    names = () if isinstance(watch, str) or not isinstance(watch, Iterable) else tuple(watch)
    if {*map(type, names)} != {str}:
        refused = f"watch of operator {name} is {repr(watch)[:60]}"
        raise OptionError(f"{refused}: write 'all', 'namespace' for where it runs, or a list of namespaces")
    return tuple(check_dns_label(each, "namespace to watch") for each in dict.fromkeys(names))


def _is_grace(seconds: object) -> bool:
    return isinstance(seconds, int | float) and 0 <= seconds <= LONGEST_GRACE


def _installed_version(name: str) -> str:
    """The version of the distribution called like the operator, as a rendered repository's is."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "0.0.0"


def _checked_version(name: str, version: str) -> str:
    """It is a part of each request's User-Agent."""
    if not is_object_name(version):
        raise OptionError(f"version of operator {name} is {version[:60]!r}: write for example '1.2.0'")
    return version
