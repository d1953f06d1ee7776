"""Index: `fits`, all filters as the check of a scheduler, with results and scores that are cached for its nodes.

Filter results and scores are cached for each shape of pods, and computed again only for nodes that changed: thousands
of pods of one template cost little more than the first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from typing import Any, Final

from ..scheduler.heap import Heap
from ..scheduler.nodes import Check, Fit, Fitting, Nodes, Score
from ..scheduler.views import NodeView, PodView
from .demand import Demand, demand
from .fits import REPELLED, fits_room, fits_shape, fits_spec
from .room import Ledger, Room, repels
from .score import fullness, least_allocated

# Cached results, about 250 bytes for each shape and node, and for each set of constraints: 100 MB in all.
CACHED_RESULTS: Final = 200_000
FEWEST_SHAPES: Final = 16
# When a pod fits on none of this many of the emptiest nodes, or nodes have more sizes, fall back to the cache of its
# shape.
MOST_PASSED: Final = 16
MOST_SIZES: Final = 16
# Score functions that are created for each pod must not fill the memory.
MOST_SCORES: Final = 4


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


class Index:
    """The cached results for the nodes of one scheduler."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._shapes: dict[Hashable, _Results] = {}
        self._constraints: dict[Hashable, _Results] = {}
        nodes.forgetting.append(self._forget)

    def _forget(self, name: str) -> None:
        for results in (*self._shapes.values(), *self._constraints.values()):
            results.forget(name)

    def judged(self, pod: PodView) -> Iterator[tuple[NodeView, Fit]]:
        """Each node with its result of `fits`."""
        fits = self._shape(pod).fits
        for view in self._nodes:
            fit = fits[view.name]
            yield view, REPELLED if fit and repels(view, pod) else fit

    def best(self, pod: PodView, score: Score) -> NodeView | None:
        """The node with the highest score that passes `fits_shape`; of equal ones the least recently changed."""
        emptiest = self._emptiest(pod) if score is least_allocated else None
        if emptiest is not None:
            return max(emptiest, key=lambda view: score(pod, view), default=None)
        shape = self._shape(pod)
        ranking = shape.rankings.get(score)
        if ranking is None:
            ranking = shape.rankings[score]
            for view in self._nodes:
                if shape.fits[view.name]:
                    ranking.set(view.name, -score(pod, view))
            _drop_oldest(shape.rankings, MOST_SCORES)
        first = ranking.first()
        return None if first is None else self._nodes.named(first[1])

    def _shape(self, pod: PodView) -> _Results:
        """The results for pods of the same shape, up to date."""
        asked = demand(pod)
        shape = self._cached(self._shapes, asked)
        constraints = self._cached(self._constraints, asked.constraints)
        rankings = tuple(shape.rankings.items())
        for view in self._nodes.changed_since(shape.up_to):
            fit = shape.fits[view.name] = self._fits_spec(constraints, pod, view) and fits_room(pod, view)
            for score, ranking in rankings:
                if fit:
                    ranking.set(view.name, -score(pod, view))
                else:
                    ranking.discard(view.name)
        shape.up_to = self._nodes.changes
        return shape

    def _emptiest(self, pod: PodView) -> list[NodeView] | None:
        """For each size of nodes the emptiest one on which the pod fits; None when it is not among the first ones.

        A pod lowers the score of all nodes of one size by the same amount, so one order serves pods of all shapes with
        the same constraints, and a changed node is ranked once for all of them.
        """
        constraints = self._cached(self._constraints, demand(pod).constraints)
        for view in self._nodes.changed_since(constraints.up_to):
            if self._fits_spec(constraints, pod, view):
                constraints.rankings[view.derived(Room).size].set(view.name, fullness(view))
        constraints.up_to = self._nodes.changes
        if len(constraints.rankings) > MOST_SIZES:
            return None
        best = []
        for ranking in constraints.rankings.values():
            passed: list[tuple[float, str]] = []
            while len(passed) < MOST_PASSED and (first := ranking.first()) is not None:
                view = self._nodes.cache.nodes[first[1]]
                if fits_room(pod, view):
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
        _drop_oldest(cache, max(FEWEST_SHAPES, CACHED_RESULTS // (len(self._nodes) + 1)))
        return results


def _drop_oldest(cache: dict[Any, Any], most: int) -> None:
    while len(cache) > most:
        del cache[next(iter(cache))]


class CachedFitting(Fitting):
    """The nodes on which a pod fits, from the index."""

    def best(self, score: Score) -> NodeView | None:
        """The node with the highest score; None when the pod fits on no node.

        Scores are cached for pods of the same shape, so `score` may use only the pod's demand and the node, and must be
        the same function in each call. For other functions use `max`.

        `least_allocated` is the fastest: one order of the nodes serves pods of all shapes. Its choice can be below the
        highest score where pods without requests count for more than a node has, and by a 64th of the pod's own share
        where nodes differ in size by less than that (100 points are the whole node).
        """
        best = self._nodes.derived(Index).best(self._pod, score)
        return super().best(score) if best is not None and repels(best, self._pod) else best


class Fits(Check):
    """`fits`, its only instance: all filters, the anti-affinity of running pods included.

    A pod that asks for something that is not supported fits on no node, so it is never misplaced.
    """

    def __call__(self, pod: PodView, node: NodeView) -> Fit:
        fit = fits_shape(pod, node)
        return REPELLED if fit and repels(node, pod) else fit

    def shape(self, pod: PodView) -> Demand:
        return demand(pod)

    def judged(self, pod: PodView, nodes: Nodes) -> Iterator[tuple[NodeView, Fit]]:
        return nodes.derived(Index).judged(pod)

    def fitting(self, pod: PodView, nodes: Nodes) -> Fitting:
        return CachedFitting(self, pod, nodes)

    def may_fit(self, pod: PodView, node: NodeView) -> bool:
        """By all but the anti-affinity of running pods, whose end is an epoch."""
        return bool(fits_shape(pod, node))

    def epoch(self, nodes: Nodes) -> int:
        return nodes.cache.derived(Ledger).lifted


fits: Final = Fits()
