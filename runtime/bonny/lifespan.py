"""Lifespan: the resources that a part of an operator keeps open while it works, such as an HTTP session or a pool.

    class ZoneController(Controller[Zone]):
        @asynccontextmanager
        async def lifespan(self) -> AsyncIterator[None]:
            async with ClientSession(os.environ["DNS_URL"]) as self.session:
                yield

You need it for systems outside of the cluster. You do not need it for requests to the API server: `axn.client`.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar

from .errors import OptionError
from .naming import check_rules
from .resource import Resource


class HasLifespan:
    """Base of `Controller`, `Reconciler`, `Watcher` and `Scheduler`: their limits, rules and lifespan."""

    timeout: ClassVar[float]
    rules: ClassVar[tuple[Resource, ...]]

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        check_rules(cls.__name__, getattr(cls, "rules", ()))
        for name in ("frequency", "max_bindings", "max_concurrent", "reconcile_every", "timeout"):
            value, count = getattr(cls, name, 1), name.startswith("max")
            if not (value >= 1 if count else value > 0):
                rule = "1 or more" if count else "more than 0 seconds"
                raise OptionError(f"{cls.__name__}.{name} is {value}: use {rule}")
        if inspect.isasyncgenfunction(cls.lifespan) or inspect.iscoroutinefunction(cls.lifespan):
            raise OptionError(f"{cls.__name__}.lifespan is not a context manager: write @asynccontextmanager above it")

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Surrounds all handlers of this instance: override it to open before the `yield`, and to close after it.

        It is entered once, before anything is watched and before this replica may lead, so a new version that cannot
        open it never becomes ready. It is left after the last handler ended, before the lease is released. A
        `Reconciler` or `Watcher` has an instance, and so a lifespan, for each term of leadership.
        An error, or a start that takes longer than `timeout`, is logged and stops the operator with exit code 5, after
        all that is open was closed. The end may take 2 s.
        """
        yield
