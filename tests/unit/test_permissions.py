"""Permissions: when it is asked for them again. Time is virtual."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from itertools import pairwise
from typing import cast

import pytest

from bonny import Operator, PeriodicTask
from bonny.client.api import Client
from bonny.client.errors import Unreachable
from bonny.run import permissions
from bonny_dev.manifest.rbac import Permission, PermissionCheck, needs
from tests.support.virtual import Clock


@pytest.mark.parametrize("answered", [False, True])
def test_the_longer_something_is_missing_the_less_often_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, answered: bool
) -> None:
    """Regression: whoever is not given a permission asked for it every ten seconds, for ever."""
    clock, asked = Clock(monkeypatch), list[float]()
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
    task = PeriodicTask("t", print, rules=(rule,))
    operator = Operator(name="op", group="example.com", controllers=[task])
    check = PermissionCheck(partial(needs, operator, namespace="default", watched=None, leader_election=False))

    async def refused(client: Client, left: Iterable[Permission]) -> set[Permission]:
        asked.append(clock.now)
        if not answered:
            raise Unreachable("nobody answers")
        return set(left)

    async def main() -> None:
        running = asyncio.create_task(check.run(cast("Client", None)))
        await asyncio.sleep(1000.0)
        running.cancel()

    monkeypatch.setattr(permissions, "refused", refused)
    clock.run(main)
    waits = [round(later - earlier) for earlier, later in pairwise(asked)]
    assert waits == [10, 20, 40, 80, 160, 300, 300]
    assert bool(check.missing) is answered
