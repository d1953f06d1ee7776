"""Bug: the child is deleted by its name alone, some time later, when it may belong to another object."""

import asyncio

from bonny import Axn, Controller
from bonny.client.api import Client
from bonny.client.errors import NotFound

from .lamp import ALL_OF_CONFIG_MAPS, CONFIG_MAP, Lamp, child_of

TASKS: set[asyncio.Task[None]] = set()


async def delete_later(client: Client, key: tuple[str, str]) -> None:
    await asyncio.sleep(1.0)
    try:
        await client.delete(CONFIG_MAP, key)
    except NotFound:
        return


class LampController(Controller[Lamp]):
    rules = ALL_OF_CONFIG_MAPS

    async def reconcile(self, axn: Axn[Lamp]) -> None:
        await axn.client.apply(CONFIG_MAP, child_of(axn, axn.key.name), manager="lamps")

    async def delete(self, axn: Axn[Lamp]) -> None:
        TASKS.add(asyncio.create_task(delete_later(axn.client, axn.key)))
