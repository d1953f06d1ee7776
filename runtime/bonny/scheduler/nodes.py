"""Nodes: the sequence of nodes that a scheduler selects from.

    random.choice(nodes)
    nodes.fitting(pod).best(least_allocated)

Nodes are decoded when they are read. Filter results and scores are cached for each shape of pods, and computed again
only for nodes that changed: thousands of pods of one template cost little more than the first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property
from itertools import takewhile
from typing import Any, Final, TypeAlias

from .assume import AssumeCache
from .fits import REPELLED, Fit, fits_room, fits_spec
from .heap import Heap
from .score import fullness, least_allocated
from .views import NodeView, PodView

Score: TypeAlias = Callable[[PodView, NodeView], float]
"""Rates a node for a pod; a higher score is better."""

# Cached results, about 250 bytes for each shape and node, and for each set of constraints: 100 MB in all.
CACHED_RESULTS: Final = 200_000
FEWEST_SHAPES: Final = 16
# When a pod fits on none of this many of the emptiest nodes, or nodes have more sizes, fall back to the cache of its
# shape.
MOST_PASSED: Final = 16
MOST_SIZES: Final = 16
# Score functions that are created for each pod must not fill the memory.
MOST_SCORES: Final = 4


class _LazySequence(Sequence[NodeView]):
    """A sequence over a list that is created on first use and never changed, so iteration may be interrupted."""

    _list: list[NodeView]

    def __len__(self) -> int:
        return len(self._list)

    def __iter__(self) -> Iterator[NodeView]:
        return iter(self._list)

    def __getitem__(self, index: Any) -> Any:
        return self._list[index]


class _Results:
    """Cached results of filters and scores: for pods of one shape, or for all pods with the same constraints."""

    def __init__(self) -> None:
        self.up_to = -1
        """The last change of nodes that is considered."""

        self.fits: dict[str, Fit] = {}
        """By node: for a shape the result of `fits_shape`, for constraints of `fits_spec`."""

        self.rankings: defaultdict[Any, Heap[float]] = defaultdict(Heap)
        """The nodes that fit: for a shape by each score, negated; for constraints by `fullness`, for each size of
        nodes."""

    def forget(self, name: str) -> None:
        """The node has another version, or is gone."""
        self.fits.pop(name, None)
        for key, ranking in list(self.rankings.items()):
            ranking.discard(name)
            if not ranking:  # it was the last node of its size
                del self.rankings[key]


class Nodes(_LazySequence):
    """The nodes that one scheduler may choose from: a sequence of `NodeView`."""

    def __init__(self, cache: AssumeCache, *, member: Callable[[str], bool] = lambda _: True) -> None:
        # `member` decides by name which nodes belong to the sequence.
        self._cache = cache
        self._member = member
        self._views = {name: view for name, view in cache.nodes.items() if member(name)}
        self.changes = 0
        """The number of changes so far."""

        self._changed = dict.fromkeys(self._views, 0)
        """The last change of each node, the newest at the end."""

        self._shapes: dict[Hashable, _Results] = {}
        self._constraints: dict[Hashable, _Results] = {}
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
        """Each node with its result of `fits`."""
        fits = self._shape(pod).fits
        for view in self:
            fit = fits[view.name]
            yield view, REPELLED if fit and view.repels(pod) else fit

    def best(self, pod: PodView, score: Score) -> NodeView | None:
        """For the runtime: the node with the highest score that passes `fits_shape`; of equal ones the least recently
        changed."""
        emptiest = self._emptiest(pod) if score is least_allocated else None
        if emptiest is not None:
            return max(emptiest, key=lambda view: score(pod, view), default=None)
        shape = self._shape(pod)
        ranking = shape.rankings.get(score)
        if ranking is None:
            ranking = shape.rankings[score]
            for name, fit in shape.fits.items():
                if fit:
                    ranking.set(name, -score(pod, self._views[name]))
            _drop_oldest(shape.rankings, MOST_SCORES)
        first = ranking.first()
        return None if first is None else self._views[first[1]]

    # --- changes ------------------------------------------------------------------------------------------------------

    def changed_since(self, change: int) -> list[NodeView]:
        """For the runtime: the nodes that changed, or whose pods changed, after the first `change` changes; all of them
        for -1."""
        later = takewhile(lambda item: item[1] > change, reversed(self._changed.items()))
        return [self._views[name] for name, _ in later][::-1]

    def touch(self, name: str) -> None:
        """For the runtime: the node, its pods or its membership changed."""
        view = self._cache.nodes.get(name) if self._member(name) else None
        if view is not self._views.get(name):
            self.__dict__.pop("_list", None)
            for results in (*self._shapes.values(), *self._constraints.values()):
                results.forget(name)
        self._changed.pop(name, None)
        if view is None:
            self._views.pop(name, None)
        else:
            self.changes += 1
            self._changed[name] = self.changes
            self._views[name] = view

    # --- cached results -----------------------------------------------------------------------------------------------

    def _shape(self, pod: PodView) -> _Results:
        """The results for pods of the same shape, up to date."""
        shape = self._cached(self._shapes, pod.demand)
        constraints = self._cached(self._constraints, pod.demand.constraints)
        rankings = tuple(shape.rankings.items())
        for view in self.changed_since(shape.up_to):
            fit = self._fits_spec(constraints, pod, view)
            fit = shape.fits[view.name] = fit if fit.reasons else fits_room(pod, view)
            for score, ranking in rankings:
                if fit.reasons:
                    ranking.discard(view.name)
                else:
                    ranking.set(view.name, -score(pod, view))
        shape.up_to = self.changes
        return shape

    def _emptiest(self, pod: PodView) -> list[NodeView] | None:
        """For each size of nodes the emptiest one on which the pod fits; None when it is not among the first ones.

        A pod lowers the score of all nodes of one size by the same amount, so one order serves pods of all shapes with
        the same constraints, and a changed node is ranked once for all of them.
        """
        constraints = self._cached(self._constraints, pod.demand.constraints)
        for view in self.changed_since(constraints.up_to):
            if not self._fits_spec(constraints, pod, view).reasons:
                constraints.rankings[view.size].set(view.name, fullness(view))
        constraints.up_to = self.changes
        if len(constraints.rankings) > MOST_SIZES:
            return None
        best = []
        for ranking in constraints.rankings.values():
            passed: list[tuple[float, str]] = []
            while len(passed) < MOST_PASSED and (first := ranking.first()) is not None:
                view = self._views[first[1]]
                if not fits_room(pod, view).reasons:
                    best.append(view)
                    break
                ranking.discard(view.name)
                passed.append(first)
            for rank, name in passed:
                ranking.set(name, rank)
            if len(passed) == MOST_PASSED:
                return None
        return best

    @staticmethod
    def _fits_spec(constraints: _Results, pod: PodView, view: NodeView) -> Fit:
        fit = constraints.fits.get(view.name)
        if fit is None:
            fit = constraints.fits[view.name] = fits_spec(pod, view)
        return fit

    def _cached(self, cache: dict[Hashable, _Results], key: Hashable) -> _Results:
        """The results that are cached under `key`, new ones if there are none; drops the least recently used ones."""
        cache[key] = results = cache.pop(key, None) or _Results()
        _drop_oldest(cache, max(FEWEST_SHAPES, CACHED_RESULTS // (len(self._views) + 1)))
        return results


def _drop_oldest(cache: dict[Any, Any], most: int) -> None:
    while len(cache) > most:
        del cache[next(iter(cache))]


class Fitting(_LazySequence):
    """The nodes on which a pod fits: a sequence of `NodeView`, made by `nodes.fitting(pod)`."""

    def __init__(self, nodes: Nodes, pod: PodView) -> None:
        self._nodes = nodes
        self._pod = pod

    @cached_property
    def _list(self) -> list[NodeView]:  # type: ignore[override]
        return [view for view, fit in self._nodes.judged(self._pod) if fit]

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
