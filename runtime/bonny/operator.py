"""Operator: what is served; `bonny.run.process` runs it.

operator = Operator(
    name="widgets-operator", group="example.com", controllers=discover(controllers), crds=discover(api)
)
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeGuard

from .api import Version
from .axn import Step
from .controller import Controller
from .core.lease import LeaseTiming
from .core.watch import WatchOptions
from .errors import OptionError
from .events import EVENT, EVENT_VERBS
from .naming import check_dns_label, check_finalizer, check_group
from .resource import Resource
from .servers.periodic import PeriodicTask
from .servers.server import Server
from .steps import PruneDescendants, default_steps
from .steps.finalizer import finalizers_of

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from .scheduler.scheduler import Scheduler

__all__ = ["LONGEST_GRACE", "Operator", "Part", "is_scheduler"]

EVENTS: Final[Resource] = {"apiGroups": [EVENT.group], "resources": [EVENT.plural], "verbs": list(EVENT_VERBS)}

LONGEST_GRACE: Final = 3600.0
"""Seconds; no pod is given longer to end."""

# k8s.io/apimachinery, pkg/apis/meta/v1/validation: FieldManagerMaxLength.
MANAGER_BYTES: Final = 128

Part: TypeAlias = "type[Controller[Any]] | type[Server] | type[Scheduler] | type[Version] | PeriodicTask"
"""What `discover` finds, and an operator serves."""


class Operator:
    """A declaration; `Process` runs it."""

    def __init__(
        self,
        *,
        name: str,
        group: str,
        controllers: Iterable[Part] = (),
        schedulers: Iterable[type[Scheduler]] = (),
        crds: Iterable[type[Version]] = (),
        steps: Sequence[Step] | None = None,
        watch: str = "all",
        watch_options: WatchOptions | None = None,
        leader_election: bool = True,
        lease: LeaseTiming | None = None,
        replicas: int = 1,
        grace: float = 25.0,
        labels: Mapping[str, str] | None = None,
        customize: Callable[[list[Resource]], list[Resource]] | None = None,
        version: str = "",
        tracing: TracerProvider | None = None,
    ) -> None:
        """`controllers` are controllers, reconcilers, watchers, schedulers and periodic tasks, in any order. `crds` are
        version classes; those of the controllers are added. `steps` replaces the default pipeline.

        `watch` says where the manifest lets it look: in "all" namespaces, or only in the "namespace" where it runs.
        `watch_options` say how streams are followed: shorter ones where a load balancer cuts idle flows sooner.
        `leader_election` says whether the manifest has replicas wait for each other, so that one of them acts; `lease`
        says how long that takes when one dies (default 15 s). `replicas` is how many the manifest asks for. `grace` is
        for how many seconds running handlers may go on after SIGTERM (default 25); the pod's grace period follows.
        `labels` are on every object of the manifest, beside the recommended ones. `customize` has the last word on it:
        a function that gets the list of its objects, fewer of them for --local or --crds-only, and returns the list to
        be written, which may be the same with changes.
        `version` is by default that of the installed distribution of this name. `tracing` is the OpenTelemetry
        `TracerProvider` that makes its spans; by default that of the process, or one that OTEL_* variables ask for.

        Raises: `UsageError` when a name is not what Kubernetes takes, `OptionError` when the parts do not fit together.
        """
        self.name = check_dns_label(name, "operator name")
        self.group = check_group(group)
        parts = (*controllers, *schedulers)
        classes = [part for part in parts if isinstance(part, type)]
        found = tuple(part for part in classes if issubclass(part, Controller))
        self.controllers: tuple[type[Controller[Any]], ...] = _unique_kinds(_unique_names(found))
        self.servers: tuple[type[Server], ...] = tuple(part for part in classes if issubclass(part, Server))
        self.schedulers: tuple[type[Scheduler], ...] = _unique_schedulers(
            tuple(part for part in classes if is_scheduler(part))
        )
        self.tasks: tuple[PeriodicTask, ...] = tuple(part for part in parts if isinstance(part, PeriodicTask))
        own = [part for part in classes if issubclass(part, Version)]
        unknown = [part for part in parts if part not in (*found, *self.servers, *self.schedulers, *self.tasks, *own)]
        if unknown:
            raise OptionError(
                f"operator {name} cannot serve {unknown[0]!r}: name classes of controllers, reconcilers, watchers or "
                "schedulers, and periodic tasks"
            )
        named = [known for controller in self.controllers for known in controller.resources()]
        versions = [known for known in (*crds, *own, *named) if isinstance(known, type)]
        self.crds: tuple[type[Version], ...] = tuple(dict.fromkeys(versions))
        for controller in self.controllers:
            _handles_hubs(controller, self.crds)
            # Own steps may be all that somebody wants.
            if steps is None and not controller.steps and not controller.has_handler():
                raise OptionError(
                    f"{controller.__name__} has no handler: define reconcile(self, axn), or add, modify, delete or "
                    "finalize"
                )
        self.steps: tuple[Step, ...] = tuple(default_steps() if steps is None else steps)
        if watch not in ("all", "namespace"):
            raise OptionError(f"watch of operator {name} is {watch!r}: write 'all', or 'namespace' for where it runs")
        self.watch = watch
        for controller in self.controllers:
            manager = f"{name}/{controller.__name__}"
            if len(manager.encode()) > MANAGER_BYTES:
                raise OptionError(
                    f"the field manager {manager} has {len(manager.encode())} characters and Kubernetes takes "
                    f"{MANAGER_BYTES}: shorten the name of the class or of the operator"
                )
            finalizers = self.finalizers(controller)
            if controller.finalizes() and controller.finalizer_of(operator=name, group=group) not in finalizers:
                raise OptionError(f"no step of {name} calls {controller.__name__}.finalize: put Finalizer() in `steps`")
            for finalizer in finalizers:
                check_finalizer(finalizer)
        _check_deployment(name, replicas, leader_election=leader_election, grace=grace, customize=customize)
        self.leader_election = leader_election
        self.lease = lease or LeaseTiming()
        self.replicas = replicas
        self.grace = grace
        self.labels = dict(labels or {})
        self.customize = customize
        self.watch_options = watch_options or WatchOptions()
        self.version = version or _installed_version(name)
        self.tracing = tracing

    def finalizers(self, controller: type[Controller[Any]]) -> tuple[str, ...]:
        """The finalizers that it keeps on the objects of that controller."""
        return finalizers_of(controller, self.steps, operator=self.name, group=self.group)

    def prunes(self, controller: type[Controller[Any]]) -> bool:
        """Whether it deletes what that controller no longer registers."""
        return controller.prunes() and any(isinstance(step, PruneDescendants) for step in self.steps)

    def rules(self) -> Iterator[tuple[str, str | None, Resource]]:
        """What its other parts may do: who, in which namespace (None: where it watches; empty: in all), what."""
        for scheduler in self.schedulers:
            for rule in (*scheduler.rules(), EVENTS):
                yield scheduler.name, "", rule
        for server in self.servers:
            for rule in server.rules():
                yield server.__name__, server.kind().namespace, rule
        for task in self.tasks:
            for rule in task.rules:
                yield task.id, None, rule

    @property
    def user_agent(self) -> str:
        return f"{self.name}/{self.version}"


def _handles_hubs(controller: type[Controller[Any]], versions: tuple[type[Version], ...]) -> None:
    """Of several versions one is what the controller works with; objects are the same in all of them."""
    for named in controller.resources():
        hubs = (
            []
            if not isinstance(named, type)
            else [known for known in versions if known.kind == named.kind and known.hub]
        )
        if hubs and named not in hubs:
            raise OptionError(
                f"{controller.__name__} handles {named.kind} {named.version}, but its hub is {hubs[0].version}: write "
                f"Controller of the hub, or move `hub = True`"
            )


def is_scheduler(found: type) -> TypeGuard[type[Scheduler]]:
    """Whether `found` is a scheduler, asked without loading `bonny.scheduler` for operators that have none."""
    module = sys.modules.get("bonny.scheduler.scheduler")
    return module is not None and issubclass(found, module.Scheduler)


def _unique_schedulers(schedulers: tuple[type[Scheduler], ...]) -> tuple[type[Scheduler], ...]:
    """A pod names its scheduler; two of one name would both bind it."""
    for number, scheduler in enumerate(schedulers):
        other = next((known for known in schedulers[:number] if known.name == scheduler.name), None)
        if other is not None:
            raise OptionError(
                f"{other.__name__} and {scheduler.__name__} are both called {scheduler.name!r}: rename one"
            )
    return schedulers


def _check_deployment(name: str, replicas: object, *, leader_election: bool, grace: object, customize: object) -> None:
    if not isinstance(replicas, int):
        raise OptionError(f"replicas of operator {name} is {replicas!r}: write a whole number")
    if replicas < 1 or (replicas > 1 and not leader_election):
        raise OptionError(f"operator {name} has {replicas} replicas: use 1, or more with leader_election=True")
    if not isinstance(grace, int | float) or not 0 <= grace <= LONGEST_GRACE:
        raise OptionError(f"grace of operator {name} is {grace!r}: use 0 to {LONGEST_GRACE:.0f} seconds")
    if customize is not None and not callable(customize):
        raise OptionError(f"customize of operator {name} is {customize!r}: name a function of a list of objects")


def _installed_version(name: str) -> str:
    """The version of the distribution called like the operator, as a rendered repository's is."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "0.0.0"


def _unique_names(controllers: tuple[type[Controller[Any]], ...]) -> tuple[type[Controller[Any]], ...]:
    """Field managers and metrics carry a controller's name, so two of one name would undo each other's work."""
    seen: dict[str, type[Controller[Any]]] = {}
    for controller in controllers:
        other = seen.setdefault(controller.__name__, controller)
        if other is not controller:
            raise OptionError(
                f"two controllers are called {controller.__name__} ({other.__module__}, {controller.__module__}): "
                "rename one"
            )
    return controllers


def _unique_kinds(controllers: tuple[type[Controller[Any]], ...]) -> tuple[type[Controller[Any]], ...]:
    """The status of a kind of one's own says how its last handling went; with two handlers it would alternate."""
    seen: dict[type[Version], type[Controller[Any]]] = {}
    for controller in controllers:
        for named in controller.resources():
            if isinstance(named, type):
                other = seen.setdefault(named, controller)
                if other is not controller:
                    raise OptionError(
                        f"{other.__name__} and {controller.__name__} both handle {named.kind}: make them one "
                        "controller, which may own several kinds"
                    )
    return controllers
