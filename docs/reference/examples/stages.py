"""The examples are about the Widget of [widgets.py](examples/widgets.py); each is run by a test."""

from __future__ import annotations

import pytest

from bonny import Wait
from bonny.errors import OptionError
from bonny.stages import StagedAxn, StagedController
from bonny_dev import testing
from docs.reference.examples.widgets import Widget, widget


async def staged_axn() -> None:
    class Passes(StagedController[Widget]):
        stages = ("DatabaseReady",)

        async def reconcile(self, axn: StagedAxn[Widget]) -> None:
            with axn.stage("DatabaseReady"):
                pass

    testing.assert_condition(await testing.handle(Passes, widget()), "DatabaseReady", True)


async def stage() -> None:
    class SetUp(StagedController[Widget]):
        stages = ("DatabaseReady", "SchemaReady")

        async def reconcile(self, axn: StagedAxn[Widget]) -> None:
            with axn.stage("DatabaseReady"):
                raise Wait("the database is starting")
            with axn.stage("SchemaReady"):
                ...

    axn = await testing.handle(SetUp, widget())
    testing.assert_condition(axn, "DatabaseReady", False, reason="Waiting", message="the database is starting")
    testing.assert_condition(axn, "SchemaReady", None, reason="WaitingForDatabaseReady")


async def set_condition() -> None:
    class Sets(StagedController[Widget]):
        stages = ("DatabaseReady",)

        async def reconcile(self, axn: StagedAxn[Widget]) -> None:
            axn.set_condition("DatabaseReady", True)

    with pytest.raises(OptionError, match="DatabaseReady is a stage"):
        await testing.handle(Sets, widget())


async def with_own_conditions() -> None:
    class Passes(StagedController[Widget]):
        stages = ("DatabaseReady",)

        async def reconcile(self, axn: StagedAxn[Widget]) -> None:
            with axn.stage("DatabaseReady"):
                pass

    axn = await testing.handle(Passes, widget())
    (condition,) = axn.with_own_conditions({})["conditions"]
    assert (condition["type"], condition["status"]) == ("DatabaseReady", "True")
