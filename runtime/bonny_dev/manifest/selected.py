"""Selected: the namespaces that an operator watches now, where it selects them by their labels."""

from __future__ import annotations

from typing import Final

from bonny.client.api import Client
from bonny.kinds import Kind
from bonny.operator import Operator

from ..uses import selector_of
from .rbac import SELECTED, Permission, grants, permissions

# Each permission in each namespace is one question to the API server, and a person waits.
MOST_CHECKED: Final = 10


async def selected_namespaces(client: Client, operator: Operator) -> list[str] | None:
    """The names of the namespaces that are selected now; None if the operator selects none by labels.

    Raises: `ApiError`.
    """
    selector = selector_of(operator)
    if not selector:
        return None
    found = await client.list(Kind("v1", "Namespace", label_selector=selector, metadata_only=True))
    return sorted(each["metadata"]["name"] for each in found)


async def needed(client: Client, operator: Operator, *, namespace: str, deployed: bool = True) -> set[Permission]:
    """The permissions that it needs now; those in the first `MOST_CHECKED` namespaces that it selects.

    Raises: `ApiError`.
    """
    names = await selected_namespaces(client, operator)
    selected = () if names is None else tuple(names[:MOST_CHECKED]) or (SELECTED,)
    granted = grants(operator, namespace=namespace, deployed=deployed, selected=selected)
    return {each for each in permissions(granted) if each.namespace != SELECTED}
