"""Nodes: the sequence of nodes that a scheduler selects from.

    random.choice(nodes)
    nodes.fitting(pod).best(least_allocated)

Nodes are decoded when they are read. Filter results and scores are cached for each shape of pods, and computed again
only for nodes that changed: thousands of pods of one template cost little more than the first.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property
from heapq import heapify, heappop, heappush
from itertools import takewhile
from typing import Any, Final, TypeAlias

from .assume import AssumeCache
from .demand import Demand
from .fits import Fit, fits_room, fits_spec
from .score import fullness, least_allocated
from .views import NodeView, PodView

__all__ = ["Fitting", "Nodes", "Score"]

Score: TypeAlias = Callable[[PodView, NodeView], float]
"""Rates a node for a pod; a higher score is better."""

_RankedNode: TypeAlias = tuple[float, int, str]
"""An item of a heap: rank, time of the computation, and name of the node. It is valid until the node changes."""

# Cached results, about 250 bytes for each shape and node, and for each set of constraints: 100 MB in all.
CACHED_RESULTS: Final = 200_000
FEWEST_SHAPES: Final = 16
# When a pod fits on none of this many of the emptiest nodes, or nodes have more sizes, fall back to the cache of its
# shape.
MOST_PASSED: Final = 16
MOST_SIZES: Final = 16
# Score functions that are created for each pod must not fill the memory.
MOST_SCORES: Final = 4
# Outdated heap items below this number are not worth a clean-up.
SLACK: Final = 64


class _LazySequence(Sequence[NodeView]):
    """A sequence over a list that is created on first use and never changed, so iteration may be interrupted."""

    _list: list[NodeView]

    def __len__(self) -> int:
        return len(self._list)

    def __iter__(self) -> Iterator[NodeView]:
        return iter(self._list)

    def __getitem__(self, index: Any) -> Any:
        return self._list[index]


class _Constraints:
    """Cached results for pods with the same constraints, whatever they request."""

    def __init__(self) -> None:
        self.up_to = -1
        """The last change of nodes in `emptiest`."""

        self.emptiest: dict[tuple[int, int], list[_RankedNode]] = {}
        """For each size of nodes, a heap of the nodes that pass `fits_spec`, by `fullness`."""

        self._fits: dict[str, tuple[NodeView, Fit]] = {}
        """The result of `fits_spec`, and the version of the node that it is for."""

    def fit(self, pod: PodView, view: NodeView) -> Fit:
        cached = self._fits.get(view.name)
        if cached is None or cached[0] is not view:
            cached = self._fits[view.name] = (view, fits_spec(pod, view))
        return cached[1]

    def forget(self, name: str) -> None:
        self._fits.pop(name, None)


class _Shape:
    """Cached results for pods of one shape."""

    def __init__(self, constraints: _Constraints) -> None:
        self.constraints = constraints
        self.up_to = -1
        """The last change of nodes in `fits` and `ranked`."""

        self.fits: dict[str, Fit] = {}
        self.ranked: dict[Score, list[_RankedNode]] = {}
        """For each score, a heap of the fitting nodes, by the negative score."""


class Nodes(_LazySequence):
    """The nodes that one scheduler may choose from."""

    def __init__(self, cache: AssumeCache, *, member: Callable[[str], bool] = lambda _: True) -> None:
        """`member` decides by name which nodes belong to the sequence. Default: all."""
        self._cache = cache
        self._member = member
        self._clock = 0
        """The number of changes so far."""

        self._changed: dict[str, int] = {}
        """The last change of each node, the newest at the end."""

        self._shapes: dict[Demand, _Shape] = {}
        self._constraints: dict[Hashable, _Constraints] = {}
        self._views = {name: view for name, view in cache.nodes.items() if member(name)}
        cache.listeners.append(self.touch)

    @cached_property
    def _list(self) -> list[NodeView]:  # type: ignore[override]
        return list(self._views.values())

    def named(self, name: str) -> NodeView | None:
        """The node with this name, or None."""
        return self._views.get(name)

    def fitting(self, pod: PodView) -> Fitting:
        """The nodes on which the pod fits at this moment."""
        return Fitting(self, pod)

    def judged(self, pod: PodView) -> Iterator[tuple[NodeView, Fit]]:
        """Each node with its result of `fits_shape`."""
        fits = self._shape(pod).fits
        return ((view, fits[view.name]) for view in self)

    def best(self, pod: PodView, score: Score) -> NodeView | None:
        """The node with the highest score that passes `judged`; of equal ones the least recently changed."""
        emptiest = self._emptiest(pod) if score is least_allocated else None
        if emptiest is not None:
            return max(emptiest, key=lambda view: score(pod, view), default=None)
        shape = self._shape(pod)
        ranked = shape.ranked.get(score)
        if ranked is None or len(ranked) > 2 * len(self._views) + SLACK:
            fitting = [self._views[name] for name, fit in shape.fits.items() if fit]
            ranked = [(-score(pod, view), self._clock, view.name) for view in fitting]
            heapify(ranked)
            shape.ranked[score] = ranked
            while len(shape.ranked) > MOST_SCORES:
                del shape.ranked[next(iter(shape.ranked))]
        while ranked:
            _, when, name = ranked[0]
            if self._changed.get(name, 0) <= when:
                return self._views[name]
            heappop(ranked)
        return None

    # --- changes ------------------------------------------------------------------------------------------------------

    def changed_since(self, moment: int) -> tuple[list[NodeView], int]:
        """The nodes that changed, or whose pods changed, after `moment`; and the current moment."""
        return [view for name in self._later(moment) if (view := self._views.get(name))], self._clock

    def touch(self, name: str | None) -> None:
        """The node, its pods or its membership changed."""
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
            # Forget the names of nodes that are gone.
            self._changed = {name: when for name, when in self._changed.items() if name in self._views}
            self._shapes.clear()
            self._constraints.clear()

    def _later(self, moment: int) -> list[str]:
        return list(takewhile(lambda name: self._changed[name] > moment, reversed(self._changed)))

    def _shape(self, pod: PodView) -> _Shape:
        """The cached results for pods like this one, brought up to date."""
        demand = pod.demand
        shape = self._shapes.pop(demand, None)
        if shape is None:
            shape = _Shape(self._constraints_of(pod))
        self._keep(self._shapes, demand, shape)
        if shape.up_to != self._clock:
            self._follow(shape, pod)
        return shape

    def _follow(self, shape: _Shape, pod: PodView) -> None:
        """Compute the results of changed nodes again: by far the largest part of most decisions."""
        views, fits, constraints, now = self._views, shape.fits, shape.constraints, self._clock
        for name in list(views) if shape.up_to < 0 else self._later(shape.up_to):
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
                for score, ranked in shape.ranked.items():
                    heappush(ranked, (-score(pod, view), now, name))
        shape.up_to = now

    # --- the emptiest, for all shapes ---------------------------------------------------------------------------------

    def _emptiest(self, pod: PodView) -> list[NodeView] | None:
        """For each size of nodes the emptiest one on which the pod fits; None when it is not among the first ones.

        A pod lowers the score of all nodes of one size by the same amount, so one order serves pods of all shapes with
        the same constraints, and a changed node is ranked once for all of them.
        """
        constraints = self._constraints_of(pod)
        self._follow_for_all(constraints, pod)
        if len(constraints.emptiest) > MOST_SIZES:
            return None
        best = []
        for heap in constraints.emptiest.values():
            passed: list[_RankedNode] = []
            while heap and len(passed) < MOST_PASSED:
                _, when, name = heap[0]
                if self._changed.get(name, 0) > when:
                    heappop(heap)
                elif fits_room(pod, self._views[name]).reasons:
                    passed.append(heappop(heap))
                else:
                    best.append(self._views[name])
                    break
            for item in passed:
                heappush(heap, item)
            if len(passed) == MOST_PASSED:
                return None
        return best

    def _follow_for_all(self, constraints: _Constraints, pod: PodView) -> None:
        now = self._clock
        for name in list(self._views) if constraints.up_to < 0 else self._later(constraints.up_to):
            view = self._views.get(name)
            if view is None:
                constraints.forget(name)
            elif not constraints.fit(pod, view).reasons:
                heap = constraints.emptiest.setdefault((_coarse(view.scored[0]), _coarse(view.scored[1])), [])
                heappush(heap, (fullness(view), now, name))
                if len(heap) > 2 * len(self._views) + SLACK:
                    heap[:] = [item for item in heap if self._changed.get(item[2], 0) <= item[1]]
                    heapify(heap)
        constraints.up_to = now

    def _constraints_of(self, pod: PodView) -> _Constraints:
        key = pod.demand.constraints
        constraints = self._constraints.pop(key, None) or _Constraints()
        self._keep(self._constraints, key, constraints)
        return constraints

    def _keep(self, cache: dict[Any, Any], key: Hashable, value: object) -> None:
        """Put `value` last, and drop the least recently used entries."""
        cache[key] = value
        while len(cache) > max(FEWEST_SHAPES, CACHED_RESULTS // (len(self._views) + 1)):
            del cache[next(iter(cache))]


def _coarse(amount: int) -> int:
    """The amount, rounded down to 7 binary digits: nodes of one kind differ by some kilobytes of memory."""
    rest = max(amount.bit_length() - 7, 0)
    return amount >> rest << rest


class Fitting(_LazySequence):
    """The nodes on which a pod fits."""

    def __init__(self, nodes: Nodes, pod: PodView) -> None:
        self._nodes = nodes
        self._pod = pod

    @cached_property
    def _list(self) -> list[NodeView]:  # type: ignore[override]
        return [view for view, fit in self._nodes.judged(self._pod) if fit and not view.repels(self._pod)]

    def best(self, score: Score) -> NodeView | None:
        """The node with the highest score; None when the pod fits on no node.

        Scores are cached for pods of the same shape, so `score` may use only the pod's demand and the node, and must be
        the same function in each call. For other functions use `max`.

        `least_allocated` is the fastest: one order of the nodes serves pods of all shapes. Its choice can be below the
        highest score where pods without requests count for more than a node has, and by a 64th of the pod's own share
        where nodes differ in size by less than that (100 points are the whole node).
        """
        best = self._nodes.best(self._pod, score)
        if best is not None and best.repels(self._pod):
            return max(self, key=lambda node: score(self._pod, node), default=None)
        return best
