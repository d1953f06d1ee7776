"""Stages: the parts of a long set-up as conditions in a fixed order, so that the status shows how far it is.

    from bonny.stages import StagedAxn, StagedController

    class ShopController(StagedController[Shop]):
        stages = ("DatabaseReady", "SchemaReady")

        async def reconcile(self, axn: StagedAxn[Shop]) -> None:
            with axn.stage("DatabaseReady"):
                ...

You need it where people wait for parts of a set-up. You do not need it to order children: `after=`.
"""

from .axn import StagedAxn as StagedAxn
from .controller import StagedController as StagedController
