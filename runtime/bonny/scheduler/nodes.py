"""Nodes: the sequence that a scheduler selects from.

    random.choice(nodes)
    nodes.fitting(pod).best(least_allocated)

Nothing is copied or decoded that is not looked at. What fits pods of one shape, and how it scores, is remembered, and
looked at again only where something changed: thousands of pods of one template cost little more than the first.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import Any, Final, TypeAlias

from .assume import AssumeCache
from .demand import Demand
from .fits import Fit, fits_room, fits_spec
from .score import fullness, least_allocated
from .views import NodeView, PodView

__all__ = ["Fitting", "Nodes", "Score"]

Score: TypeAlias = Callable[[PodView, NodeView], float]
"""How well a node suits a pod; the larger, the better."""

_Place: TypeAlias = tuple[float, int, str]
"""In a heap: how good a node is, when that was found, and its name. It holds until the node changes."""

# What is remembered takes about 250 bytes for each shape and node, and for each set of constraints: 100 MB in all.
REMEMBERED: Final = 200_000
FEWEST_SHAPES: Final = 16
# Where a pod fits into none of so many of the emptiest nodes, or nodes have more sizes, looking on is slower than what
# is remembered for its shape.
MOST_PASSED: Final = 16
MOST_SIZES: Final = 16
# Functions that are made anew for each pod must not fill the memory.
MOST_SCORES: Final = 4
# Outdated places below this number are not worth a clean-up.
SLACK: Final = 64


class _List(Sequence[NodeView]):
    """A sequence over a list that is made when it is needed, and never changed: who iterates may wait in between."""

    _list: list[NodeView]

    def __len__(self) -> int:
        return len(self._list)

    def __iter__(self) -> Iterator[NodeView]:
        return iter(self._list)

    def __getitem__(self, index: Any) -> Any:
        return self._list[index]


class _Constraints:
    """What is known of the nodes for pods with the same constraints, whatever they request."""

    def __init__(self) -> None:
        self.followed = -1
        """Up to when the changes of nodes were followed in `emptiest`."""

        self.emptiest: dict[tuple[int, int], list[_Place]] = {}
        """For each size of nodes a heap of those that fit as such, by `fullness`."""

        self._fits: dict[str, tuple[NodeView, Fit]] = {}
        """What `fits_spec` said of which version of a node."""

    def fit(self, pod: PodView, view: NodeView) -> Fit:
        found = self._fits.get(view.name)
        if found is None or found[0] is not view:
            found = self._fits[view.name] = (view, fits_spec(pod, view))
        return found[1]

    def forget(self, name: str) -> None:
        self._fits.pop(name, None)


class _Shape:
    """What is known of the nodes for pods of one shape."""

    def __init__(self, constraints: _Constraints) -> None:
        self.constraints = constraints
        self.followed = -1
        """Up to when the changes of nodes were followed."""

        self.fits: dict[str, Fit] = {}
        self.places: dict[Score, list[_Place]] = {}
        """For each score a heap of those that fit, by the score below zero."""


class Nodes(_List):
    """The nodes that one scheduler may choose from."""

    def __init__(self, cache: AssumeCache, *, member: Callable[[str], bool] = lambda _: True) -> None:
        """`member` says by its name whether a node is one of them. Default: all are."""
        self._cache = cache
        self._member = member
        self._clock = 0
        """How many changes there were."""

        self._changed: dict[str, int] = {}
        """The last change of each node, the latest at the end."""

        self._shapes: dict[Demand, _Shape] = {}
        self._constraints: dict[Hashable, _Constraints] = {}
        self._views = {name: view for name, view in cache.nodes.items() if member(name)}
        cache.listeners.append(self.touch)

    @cached_property
    def _list(self) -> list[NodeView]:  # type: ignore[override]
        return list(self._views.values())

    def named(self, name: str) -> NodeView | None:
        """The node of that name, if it is one of these."""
        return self._views.get(name)

    def fitting(self, pod: PodView) -> Fitting:
        """Those into which the pod fits, by all that is known at this moment."""
        return Fitting(self, pod)

    def judged(self, pod: PodView) -> Iterator[tuple[NodeView, Fit]]:
        """Each node with what `fits_shape` says of it."""
        fits = self._shape(pod).fits
        return ((view, fits[view.name]) for view in self)

    def best(self, pod: PodView, score: Score) -> NodeView | None:
        """Of those that `judged` finds right the one with the highest score, and of equals the least lately changed."""
        emptiest = self._emptiest(pod) if score is least_allocated else None
        if emptiest is not None:
            return max(emptiest, key=lambda view: score(pod, view), default=None)
        shape = self._shape(pod)
        places = shape.places.get(score)
        if places is None or len(places) > 2 * len(self._views) + SLACK:
            fitting = [self._views[name] for name, fit in shape.fits.items() if fit]
            places = [(-score(pod, view), self._clock, view.name) for view in fitting]
            heapify(places)
            shape.places[score] = places
            while len(shape.places) > MOST_SCORES:
                del shape.places[next(iter(shape.places))]
        while places:
            _, when, name = places[0]
            if self._changed.get(name, 0) <= when:
                return self._views[name]
            heappop(places)
        return None

    # --- what changes -------------------------------------------------------------------------------------------------

    def changed_since(self, moment: int) -> tuple[list[NodeView], int]:
        """The nodes that changed, or whose pods did, after `moment`; and the present moment."""
        return [view for name in self._later(moment) if (view := self._views.get(name))], self._clock

    def touch(self, name: str | None) -> None:
        """The node changed, or its pods did, or it may be a member or not any more."""
        view = self._cache.nodes.get(name) if name is not None and self._member(name) else None
        if name is None or (view is None and name not in self._views):
            return
        self._clock += 1
        self._changed.pop(name, None)
        self._changed[name] = self._clock
        if self._views.get(name) is view:
            return
        self.__dict__.pop("_list", None)
        if view is not None:
            self._views[name] = view
            return
        del self._views[name]
        if len(self._changed) > 2 * len(self._views) + SLACK:
            # Nodes come and go under ever new names.
            self._changed = {name: when for name, when in self._changed.items() if name in self._views}
            self._shapes.clear()
            self._constraints.clear()

    def _later(self, moment: int) -> list[str]:
        found = []
        for name, when in reversed(self._changed.items()):
            if when <= moment:
                break
            found.append(name)
        return found

    def _shape(self, pod: PodView) -> _Shape:
        """What is known for pods like this one, brought up to date."""
        demand = pod.demand
        shape = self._shapes.pop(demand, None)
        if shape is None:
            shape = _Shape(self._constraints_of(pod))
        self._keep(self._shapes, demand, shape)
        if shape.followed != self._clock:
            self._follow(shape, pod)
        return shape

    def _follow(self, shape: _Shape, pod: PodView) -> None:
        """Look again at the nodes that changed: by far the largest part of most decisions."""
        views, fits, constraints, now = self._views, shape.fits, shape.constraints, self._clock
        for name in list(views) if shape.followed < 0 else self._later(shape.followed):
            view = views.get(name)
            if view is None:
                fits.pop(name, None)
                constraints.forget(name)
                continue
            fit = constraints.fit(pod, view)
            if not fit.reasons:
                fit = fits_room(pod, view)
            fits[name] = fit
            if not fit.reasons:
                for score, places in shape.places.items():
                    heappush(places, (-score(pod, view), now, name))
        shape.followed = now

    # --- the emptiest, for all shapes ---------------------------------------------------------------------------------

    def _emptiest(self, pod: PodView) -> list[NodeView] | None:
        """For each size of nodes the emptiest into which the pod fits; None where that is not found at once.

        A pod of any shape makes all nodes of one size worse by the same, so it need not be asked which it is: a node
        that changed is looked at once for all shapes with the same constraints.
        """
        constraints = self._constraints_of(pod)
        self._follow_for_all(constraints, pod)
        if len(constraints.emptiest) > MOST_SIZES:
            return None
        found = []
        for heap in constraints.emptiest.values():
            passed: list[_Place] = []
            while heap and len(passed) < MOST_PASSED:
                _, when, name = heap[0]
                if self._changed.get(name, 0) > when:
                    heappop(heap)
                elif fits_room(pod, self._views[name]).reasons:
                    passed.append(heappop(heap))
                else:
                    found.append(self._views[name])
                    break
            for place in passed:
                heappush(heap, place)
            if len(passed) == MOST_PASSED:
                return None
        return found

    def _follow_for_all(self, constraints: _Constraints, pod: PodView) -> None:
        now = self._clock
        for name in list(self._views) if constraints.followed < 0 else self._later(constraints.followed):
            view = self._views.get(name)
            if view is None:
                constraints.forget(name)
            elif not constraints.fit(pod, view).reasons:
                heap = constraints.emptiest.setdefault((_coarse(view.scored[0]), _coarse(view.scored[1])), [])
                heappush(heap, (fullness(view), now, name))
                if len(heap) > 2 * len(self._views) + SLACK:
                    heap[:] = [place for place in heap if self._changed.get(place[2], 0) <= place[1]]
                    heapify(heap)
        constraints.followed = now

    def _constraints_of(self, pod: PodView) -> _Constraints:
        key = pod.demand.constraints
        constraints = self._constraints.pop(key, None) or _Constraints()
        self._keep(self._constraints, key, constraints)
        return constraints

    def _keep(self, known: dict[Any, Any], key: Hashable, one: object) -> None:
        """Put it last, and forget what was not asked for lately."""
        known[key] = one
        while len(known) > max(FEWEST_SHAPES, REMEMBERED // (len(self._views) + 1)):
            del known[next(iter(known))]


def _coarse(amount: int) -> int:
    """The amount in its first 7 binary digits: nodes of one kind differ in some kilobytes of memory."""
    rest = max(amount.bit_length() - 7, 0)
    return amount >> rest << rest


class Fitting(_List):
    """The nodes into which a pod fits."""

    def __init__(self, nodes: Nodes, pod: PodView) -> None:
        self._nodes = nodes
        self._pod = pod

    @cached_property
    def _list(self) -> list[NodeView]:  # type: ignore[override]
        return [view for view, fit in self._nodes.judged(self._pod) if fit and not view.repels(self._pod)]

    def best(self, score: Score) -> NodeView | None:
        """The node with the highest score; None when the pod fits nowhere.

        What it computed is remembered for pods of the same shape, so `score` must look at nothing but the pod's demand
        and the node, and be the same function each time. For any other use `max`.

        `least_allocated` is the quickest: one order of the nodes serves pods of all shapes. Its choice may be below the
        highest score where pods without requests count for more than a node has, and by a 64th of the pod's own share
        where nodes differ in size by less than that (100 points are the whole node).
        """
        best = self._nodes.best(self._pod, score)
        if best is not None and best.repels(self._pod):
            return max(self, key=lambda node: score(self._pod, node), default=None)
        return best
