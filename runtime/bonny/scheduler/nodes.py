"""Nodes: the sequence of nodes that a scheduler selects from, and the check whether a pod fits on one of them.

    random.choice(nodes)
    nodes.fitting(pod).best(least_allocated)

Nodes are decoded when they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import takewhile
from typing import Any, Final, TypeAlias

from ..errors import UsageError
from .assume import AssumeCache
from .views import Derived, NodeView, PodView


class Fit:
    """True, or false with `reasons`, in kube-scheduler's words after a number of nodes.

    `plugin` is the part of the check that failed: a label of a metric, from a closed set.
    """

    __slots__ = ("plugin", "reasons")

    def __init__(self, *reasons: str, plugin: str = "Check") -> None:
        self.reasons = reasons
        self.plugin = plugin

    def __bool__(self) -> bool:
        return not self.reasons

    def __repr__(self) -> str:
        return f"Fit{self.reasons}"


class Refusal(Fit):
    """False on every node, because of the pod itself: the reason is reported without a number of nodes."""

    __slots__ = ()


FITS: Final = Fit()

Score: TypeAlias = Callable[[PodView, NodeView], float]
"""Rates a node for a pod; a higher score is better."""


class _LazySequence(Sequence[NodeView]):
    """A sequence over a list that is created on first use and never changed, so iteration may be interrupted."""

    _list: list[NodeView]

    def __len__(self) -> int:
        return len(self._list)

    def __iter__(self) -> Iterator[NodeView]:
        return iter(self._list)

    def __getitem__(self, index: Any) -> Any:
        return self._list[index]


class Nodes(Derived, _LazySequence):
    """The nodes that one scheduler may choose from: a sequence of `NodeView`."""

    def __init__(self, cache: AssumeCache, check: Check, *, member: Callable[[str], bool] = lambda _: True) -> None:
        # `member` decides by name which nodes belong to the sequence.
        self.cache = cache
        self.check = check
        self._member = member
        self._views = {name: view for name, view in cache.nodes.items() if member(name)}
        self.changes = 0
        """The number of changes so far."""

        self._changed = dict.fromkeys(self._views, 0)
        """The last change of each node, the newest at the end."""

        # For filters: each is called with the name of a node that has another version, or is gone.
        self.forgetting: list[Callable[[str], None]] = []
        cache.listeners.append(self.touch)

    @cached_property
    def _list(self) -> list[NodeView]:  # type: ignore[override]
        return list(self._views.values())

    def __len__(self) -> int:
        return len(self._views)

    def named(self, name: str) -> NodeView | None:
        """The node with this name, or None."""
        return self._views.get(name)

    def fitting(self, pod: PodView) -> Fitting:
        """The nodes on which the pod fits at this moment. Raises: `UsageError` for a scheduler without a `check`."""
        return self.check.fitting(pod, self)

    def changed_since(self, change: int) -> list[NodeView]:
        """For the runtime: the nodes that changed, or whose pods changed, after the first `change` changes; all of them
        for -1."""
        later = takewhile(lambda item: item[1] > change, reversed(self._changed.items()))
        return [self._views[name] for name, _ in later][::-1]

    def touch(self, name: str) -> None:
        """For the runtime: the node, its pods or its membership changed."""
        view = self.cache.nodes.get(name) if self._member(name) else None
        if view is not self._views.get(name):
            self.__dict__.pop("_list", None)
            for forget in self.forgetting:
                forget(name)
        self._changed.pop(name, None)
        if view is None:
            self._views.pop(name, None)
        else:
            self.changes += 1
            self._changed[name] = self.changes
            self._views[name] = view


class Fitting(_LazySequence):
    """The nodes on which a pod fits: a sequence of `NodeView`, made by `nodes.fitting(pod)`."""

    def __init__(self, check: Check, pod: PodView, nodes: Nodes) -> None:
        self._check, self._pod, self._nodes = check, pod, nodes

    @cached_property
    def _list(self) -> list[NodeView]:  # type: ignore[override]
        return [view for view, fit in self._check.judged(self._pod, self._nodes) if fit]

    def best(self, score: Score) -> NodeView | None:
        """The node with the highest score; None when the pod fits on no node.

        With the filters of `bonny.filters`, scores are cached for pods of the same shape: there, `score` may use only
        the pod's demand and the node, and must be the same function in each call. For other functions use `max`.
        """
        return max(self, key=lambda node: score(self._pod, node), default=None)


class Check:
    """Base of filters. They override more than the call where they know more than a function does."""

    def __call__(self, pod: PodView, node: NodeView) -> Fit:
        """Whether the pod may run on the node."""
        raise NotImplementedError

    def shape(self, pod: PodView) -> Hashable:
        """Pods of equal shape take the same room, and `may_fit` is the same for them. Default: all pods are equal."""
        return None

    def judged(self, pod: PodView, nodes: Nodes) -> Iterable[tuple[NodeView, Fit]]:
        """Each node with its result."""
        return ((node, self(pod, node)) for node in nodes)

    def fitting(self, pod: PodView, nodes: Nodes) -> Fitting:
        """The nodes on which the pod fits."""
        return Fitting(self, pod, nodes)

    def may_fit(self, pod: PodView, node: NodeView) -> bool:
        """Whether a waiting pod is tried again because this node changed. Default: yes."""
        return True

    def epoch(self, nodes: Nodes) -> int:
        """A number that grows when all waiting pods are tried again. Default: always the same."""
        return 0


class FunctionCheck(Check):
    """A function of pod and node as a check; `failed` is the result where it returns False."""

    def __init__(self, function: Callable[[PodView, NodeView], Fit | bool], failed: Fit) -> None:
        self._function, self._failed = function, failed

    def __call__(self, pod: PodView, node: NodeView) -> Fit:
        fit = self._function(pod, node)
        return fit if isinstance(fit, Fit) else FITS if fit else self._failed


class Unchecked(Check):
    """The check of a scheduler that has none."""

    def __call__(self, pod: PodView, node: NodeView) -> Fit:
        return FITS

    def fitting(self, pod: PodView, nodes: Nodes) -> Fitting:
        raise UsageError(
            "nodes.fitting needs the check of the scheduler, which has none: set `check = fits`, from bonny.filters"
        )
