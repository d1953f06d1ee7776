"""Bug: children with generated names are counted in the cache, which does not show yet what was just created."""

from bonny import Axn, Controller, Related

from .lamp import ALL_OF_CONFIG_MAPS, CONFIG_MAP, Lamp, child_of

CHILDREN = 2
OWNER = "broken.example.com/owner"


class LampController(Controller[Lamp]):
    rules = ALL_OF_CONFIG_MAPS
    related = (Related("v1", "ConfigMap", keys=lambda child: [child["metadata"].get("labels", {}).get("lamp", "")]),)

    async def reconcile(self, axn: Axn[Lamp]) -> None:
        found = axn.related("v1", "ConfigMap", selector={OWNER: axn.uid})
        for _ in range(CHILDREN - len(found)):
            child = child_of(axn)
            child["metadata"]["labels"][OWNER] = axn.uid
            await axn.client.create(CONFIG_MAP, {**child, "data": {}})
