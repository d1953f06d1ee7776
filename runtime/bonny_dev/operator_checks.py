"""Checks of an operator as a whole: declarations that do not fit together, each fine by itself.

Internal: every command that loads an operator, and every manifest, begins with `check_operator`. A running operator
repeats none of it: an image is made of a repository whose manifest was written and whose tests ran.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeVar

from bonny.errors import OptionError
from bonny.naming import check_finalizer

if TYPE_CHECKING:
    from bonny.controller import Controller
    from bonny.operator import Operator

K = TypeVar("K")
V = TypeVar("V")

# k8s.io/apimachinery, pkg/apis/meta/v1/validation: FieldManagerMaxLength.
MANAGER_BYTES: Final = 128


def check_operator(operator: Operator) -> None:
    """Raises: `OptionError` when the parts of the operator do not fit together."""
    _check_uniqueness(operator)
    for controller in operator.controllers:
        _check_controller(operator, controller)


def _check_uniqueness(operator: Operator) -> None:
    # Field managers and metrics carry the controller's name, and paths of webhooks that of the admission.
    for sort, classes in (("controllers", operator.controllers), ("admissions", _of(operator, "webhooks"))):
        for name, a, b in duplicates((each.__name__, each) for each in classes):
            raise OptionError(f"two {sort} are called {name} ({a.__module__}, {b.__module__}): rename one")
    # A pod names its scheduler; two schedulers of one name would both bind it.
    for name, one, other in duplicates((each.name, each) for each in _of(operator, "scheduler")):
        raise OptionError(f"{one.__name__} and {other.__name__} are both called {name!r}: rename one")
    # The condition Reconciled shows the last reconcile; with two controllers it would alternate.
    handlers = [(each, controller) for controller in operator.controllers for each in controller.resources()]
    for handled, one, other in duplicates(handlers):
        if isinstance(handled, type):
            raise OptionError(
                f"{one.__name__} and {other.__name__} both handle {handled.kind}: make them one controller, which "
                "may own several kinds"
            )
    for (extra, name), *_ in duplicates(((each.extra, each.name), each) for each in operator.declarations):
        raise OptionError(f"two {extra} are called {name}: rename one")


def _of(operator: Operator, extra: str) -> list[Any]:
    return [part for part in operator.parts if part.extra == extra]


def _check_controller(operator: Operator, controller: type[Controller[Any]]) -> None:
    from bonny.core.records import Action  # noqa: PLC0415  `invoke --list` must stay light
    from bonny.steps import default_steps  # noqa: PLC0415

    for handled in controller.resources():
        hubs = [version for version in operator.crds if version.kind == handled.kind and version.hub]
        if isinstance(handled, type) and hubs and handled not in hubs:
            raise OptionError(
                f"{controller.__name__} handles {handled.kind} {handled.version}, but its hub is "
                f"{hubs[0].version}: import {handled.kind} from {hubs[0].__module__}, or move `hub = True`"
            )
    manager = f"{operator.name}/{controller.__name__}"
    if len(manager.encode()) > MANAGER_BYTES:
        raise OptionError(
            f"the field manager {manager} has {len(manager.encode())} characters and Kubernetes takes "
            f"{MANAGER_BYTES}: shorten the name of the class or of the operator"
        )
    finalizers = operator.finalizers(controller)
    own = controller.finalizer_of(operator=operator.name, group=operator.group)
    if controller.finalizes() and own not in finalizers:
        raise OptionError(
            f"no step of {operator.name} calls {controller.__name__}.finalize: put Finalizer() in `steps`"
        )
    for finalizer in finalizers:
        check_finalizer(finalizer)
    # A controller without handlers makes sense where the operator has steps of its own.
    others = set(map(type, operator.steps)) - set(map(type, default_steps()))
    if not (others or controller.steps or any(map(controller.handles, Action))):
        raise OptionError(
            f"{controller.__name__} has no handler: define reconcile(self, axn), or add, modify, delete or finalize"
        )


def duplicates(items: Iterable[tuple[K, V]]) -> Iterator[tuple[K, V, V]]:
    """Keys that have two different values."""
    first: dict[K, V] = {}
    for key, value in items:
        other = first.setdefault(key, value)
        if other is not value:
            yield key, other, value
