"""Token: builds an `Axn` for a handler test without a server, and passes it through a handler.

    token = await testing.handle(WidgetController, widget(size=3))
    testing.assert_descendant(token, "ConfigMap", "w1", data={"size": "3"})

Nothing is sent: the token holds the registered state. The test answers the requests with `axn.client`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, cast, overload

import msgspec

from bonny.api import Version
from bonny.axn import V_co
from bonny.controller import Controller
from bonny.core.objects import Objects, decode_item
from bonny.core.ordering import ObjectName
from bonny.core.queue import Reason
from bonny.core.records import Action
from bonny.core.selector import Selector
from bonny.engine.context import ReconcileContext
from bonny.engine.reconcile import Reconcile
from bonny.engine.router import Router
from bonny.errors import OptionError, Wait
from bonny.events import Event
from bonny.kinds import Kind, Owned, Scope
from bonny.naming import is_object_name
from bonny.pipeline import call_handler, run_step
from bonny.resource import Key, Resource, gvk_of, has_all_of, identify, key_of, named, owners_of
from bonny.servers.periodic import PeriodicTasks
from bonny.steps.apply_descendants import declared
from bonny.steps.delegate import DelegateToController

from ..crd.objects import check_object, check_status
from ..manifest.granting import API_VERSION, lacking
from ..manifest.rbac import permissions
from .answers import AnsweringClient, AnyAnswers, SentRequest
from .shown import ShownObjects, streams_of
from .stubs import check_fields

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    V = TypeVar("V", bound=Version, default=Any)
    T = TypeVar("T")
    A = TypeVar("A", bound=Reconcile[Any])


HANDLERS: Final = ("reconcile", "add", "modify", "finalize", "delete")


class Handled(Reconcile[V_co]):
    """The token of a test: an `Axn`, with the requests that the handler sent. A status is checked when the handler
    registers it, not when it is sent."""

    def update_status(self, change: Any) -> None:
        super().update_status(change)
        model = None if self._version is None else self._version.status_model()
        if model is not None:
            check_status(self.status_from(self.resource.get("status") or {}), model)

    @property
    def requests(self) -> list[SentRequest]:
        """The requests sent with `axn.client`, in order."""
        return cast("AnsweringClient", self.client).answers.requests


def _token_class(axn_class: type[Reconcile[Any]]) -> Any:
    """`Handled` as a controller with that `axn_class` gets it."""
    return type("Handled", (Handled, axn_class), {}) if axn_class is not Reconcile else Handled


@overload
def axn(
    resource: Resource,
    *,
    version: type[V] | None = None,
    action: Action | str = Action.ADD,
    observed: Iterable[Mapping[str, Any]] = (),
    reasons: Iterable[Reason | str] = (),
    tries: int = 0,
    options: Mapping[str, Any] | None = None,
    now: datetime | None = None,
    answers: AnyAnswers | None = None,
) -> Handled[V]: ...


@overload
def axn(
    resource: Resource,
    *,
    version: type[Version] | None = None,
    action: Action | str = Action.ADD,
    observed: Iterable[Mapping[str, Any]] = (),
    reasons: Iterable[Reason | str] = (),
    tries: int = 0,
    options: Mapping[str, Any] | None = None,
    now: datetime | None = None,
    answers: AnyAnswers | None = None,
    axn_class: type[A],
) -> A: ...


def axn(
    resource: Resource,
    *,
    version: type[Version] | None = None,
    action: Action | str = Action.ADD,
    observed: Iterable[Mapping[str, Any]] = (),
    reasons: Iterable[Reason | str] = (),
    tries: int = 0,
    options: Mapping[str, Any] | None = None,
    now: datetime | None = None,
    answers: AnyAnswers | None = None,
    axn_class: type[Reconcile[Any]] = Reconcile,
) -> Reconcile[Any]:
    """The token of an action event on `resource`.

    `version` is the class that types its spec, and by which the object is checked and filled in as the API server does
    it, None for kinds without one; `observed` are the live objects that `axn.observed`, `axn.children` and
    `axn.related` find; `tries` are those before this one that did not succeed; `now` is `axn.now`, by default the time;
    `answers` are those to the requests of `axn.client`, see `bonny_dev.testing.answers`; `axn_class` is that of the
    controller.
    Raises: `InvalidObject` when the API server would refuse `resource`, or drop a field of it.
    """
    kind = _kind_of(resource, version)
    checked = resource if version is None else check_object(version, resource, strict=True)
    token: Reconcile[Any] = _token_class(axn_class)(
        action=Action(action),
        resource=checked,
        reasons=frozenset(map(Reason, reasons)),
        tries=tries,
        now=now or datetime.now(UTC),
        _context=_OfflineContext(observed, answers, kind=kind, handled=resource),
        _controller=_Untested.configured(options=options or {})(),
        _kind=kind,
        _version=version,
        _shown=decode_item(msgspec.json.encode(checked)),
    )
    _ = token.spec  # refuses it as the API server would
    return token


async def handle(
    controller: type[Controller[T]],
    resource: Resource,
    *,
    action: Action | str = Action.ADD,
    observed: Iterable[Mapping[str, Any]] = (),
    reasons: Iterable[Reason | str] = (),
    tries: int = 0,
    now: datetime | None = None,
    answers: AnyAnswers | None = None,
) -> Handled[T]:
    """Call the handler of `controller` that fits `action`, as the operator would, and return the token it leaves.
    Its `lifespan` is entered before, and left after it.

    The object, and each status that the handler registers, is checked and filled in as the API server does it; unknown
    fields are refused. So are children of a kind that the controller does not own, unknown and wrongly typed fields of
    built-in kinds, and Roles that grant more than the operator has. The controller's own steps run, `def` handlers run
    in a thread. For `finalize` it is called as the step `Finalizer` does; without a handler for `action` nothing is
    called. `now` is `axn.now`, by default the time. A `Wait` is not raised: its message is in `waiting` of the token,
    its time in `requeue_seconds`. `waiting` also names the objects that others wait for (`register_descendant(after=,
    when=)`), judged by `observed`.

    `answers` are the answers to requests with `axn.client`; a request that has none, or that the controller's
    `rules` do not allow, fails the test. The token has them as `requests`.

    `observed` are the live objects that `axn.observed`, `axn.children` and `axn.related` find. A child names its owner,
    by the label `bonny.dev/owner-uid` or by an owner reference: `child_of` makes one.
    Raises: the errors of the handler; `InvalidObject` for an object, a child or a status that the API server would
    refuse, or drop a field of; `UndeclaredKind`; `OptionError` for a controller without a handler, or with a misspelt
    one; `HandlerTimeout` when it takes longer than the controller's `timeout`.
    """
    _check_handlers(controller)
    made = controller()
    group, _, api_version = resource.get("apiVersion", "").rpartition("/")
    version = controller.version_for(group, api_version, resource.get("kind", ""))
    kind = _kind_of(resource, version)
    context = _OfflineContext(observed, answers, kind=kind, handled=resource, controller=controller)
    checked = resource if version is None or action == Action.FINALIZE else check_object(version, resource, strict=True)
    token: Handled[T] = _token_class(controller.axn_class)(
        action=Action(action),
        resource=checked,
        reasons=frozenset(map(Reason, reasons)),
        tries=tries,
        now=now or datetime.now(UTC),
        _context=context,
        _controller=made,
        _kind=kind,
        _version=version,
        _shown=decode_item(msgspec.json.encode(checked)),
    )
    try:
        async with made.lifespan():
            await run_step(token, DelegateToController())
            if token.action is Action.FINALIZE and controller.finalizes():
                name = f"finalize of {controller.__name__}"
                await call_handler(made.finalize, token, seconds=made.timeout, name=name)
    except Wait as wait:
        token.wait(str(wait), after=wait.after)
    context.client.check()
    for each in token.descendants:
        declared(token, each)
        check_fields(each)
        _check_granting(token, each, context.client)
    if others := awaited(token)[1]:
        token.wait(f"waiting for {', '.join(others)}")
    return token


def _check_handlers(controller: type[Controller[Any]]) -> None:
    """Raises: `OptionError` for a controller without a handler, and for a method that is probably a misspelt one."""
    for name in dir(controller):
        meant = get_close_matches(name, HANDLERS, n=1, cutoff=0.85)
        if meant and not hasattr(Controller, name) and not name.startswith(("_", *HANDLERS)):
            raise OptionError(f"{controller.__name__}.{name} is never called: did you mean {meant[0]}?")
    if not controller.steps and all(getattr(controller, name) is getattr(Controller, name) for name in HANDLERS):
        raise OptionError(f"{controller.__name__} has no handler: define reconcile")


def _check_granting(token: Reconcile[Any], resource: Resource, client: AnsweringClient) -> None:
    """Raises: `AssertionError` for a Role or a binding that the API server would refuse."""
    if resource["apiVersion"] != API_VERSION:
        return
    known, held = [*token.descendants, *cast("_OfflineContext", token.context).shown], permissions(client.granted)
    if rules := lacking(resource, held, namespace=token.key.namespace, known=known):
        raise AssertionError(
            f"{type(token.controller).__name__} registered {identify(resource)}, which grants rules that the "
            f"operator does not have: add to its `rules`: {', '.join(map(json.dumps, rules))}"
        )


def awaited(token: Reconcile[Any]) -> tuple[set[ObjectName], list[str]]:
    """The objects that wait, and those for which they wait, as the step `ApplyDescendants` finds them."""
    held: set[ObjectName] = set()
    others: dict[str, None] = {}
    for each in (each for group in token.descendant_groups() for each in group):
        unready = [name for name in each.after if name in held or not _is_ready(token, name, each.when)]
        live = token.context.observed(each.resource)
        if unready and (live is None or not has_all_of(live, each.resource)):
            held.add(each.name)
            others |= {str(name): None for name in unready if name not in held}
    return held, list(others)


def _is_ready(token: Reconcile[Any], name: ObjectName, when: Callable[[Resource], bool] | None) -> bool:
    live = token.context.observed(named(*name))
    return when is None or (live is not None and when(live))


class _Untested(Controller[Any]):
    """The controller of a token that was built without one."""


def _kind_of(resource: Mapping[str, Any], version: type[Version] | None) -> Kind:
    """The kind of a handled object; of an object without type, as in a list, any."""
    kind, key = resource.get("kind") or "Object", key_of(resource)
    if not (is_object_name(key.name) and (not key.namespace or is_object_name(key.namespace))):
        raise OptionError(f"no object can be called {str(key)[:100]!r}: correct metadata.name or metadata.namespace")
    return Kind(
        resource.get("apiVersion") or "v1",
        kind,
        plural=version.plural if version is not None else f"{kind.lower()}s",
        scope=Scope.NAMESPACED if key.namespace else Scope.CLUSTER,
    )


class _OfflineContext(ReconcileContext):
    """A context that has some objects, and gets answers from the test instead of a server."""

    client: AnsweringClient

    def __init__(
        self,
        observed: Iterable[Mapping[str, Any]],
        answers: AnyAnswers | None,
        *,
        kind: Kind,
        handled: Resource,
        controller: type[Controller[Any]] | None = None,
    ) -> None:
        """Without a controller, every kind in `observed` is one that it owns."""
        shown, key = [cast("Resource", each) for each in observed], key_of(handled)
        owns = dict.fromkeys(map(_owned, shown)) if controller is None else controller.owns
        related = () if controller is None else controller.related
        client = AnsweringClient(answers or {}, served=controller, group=kind.group)
        self.recorded: list[Event] = []
        self.shown, self._strict = shown, controller is not None
        self._observed = {_name(resource, key.namespace): resource for resource in shown}
        super().__init__(
            operator="test",
            manager="test/Controller",
            finalizer="test.example.com/controller",
            client=client,
            router=Router(
                primary=[ShownObjects(kind)],
                owned=streams_of(owns, shown, handled=handled),
                related=streams_of(related, shown, handled=handled),
                on_status=False,
            ),
            key=key,
            emit=lambda _, event: self.recorded.append(event),
            offline=True,
            periodic_tasks=PeriodicTasks(client),
            wrote=True,  # so that success events are emitted, as when something changed
        )

    def observed(self, descendant: Mapping[str, Any]) -> Resource | None:
        if self._strict and all(kind.gvk != gvk_of(descendant) for kind in (*self.owns, *self.router.related)):
            return super().observed(descendant)  # which refuses it
        return self._observed.get(_name(descendant, self.key.namespace))

    def children_of(self, gvk: tuple[str, str], owner_uid: str, *, selector: Selector) -> Objects:
        for resource in self._observed.values():
            if gvk_of(resource) == gvk and not owners_of(resource):
                raise OptionError(
                    f"{identify(resource)} in `observed` names no owner, so it cannot be a child: "
                    "write testing.child_of(owner, child)"
                )
        return super().children_of(gvk, owner_uid, selector=selector)


def _owned(resource: Resource) -> Owned:
    kind = _kind_of(resource, None)
    return Owned(*kind.gvk, plural=kind.plural, scope=kind.scope)


def _name(resource: Mapping[str, Any], namespace: str) -> tuple[tuple[str, str], Key]:
    key = key_of(resource)
    return gvk_of(resource), Key(key.namespace or namespace, key.name)
