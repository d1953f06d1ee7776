"""Uses: which extras an operator uses; the tools ask before they load one, because a repository may not carry it."""

from __future__ import annotations

from bonny.operator import Operator


def has_webhooks(operator: Operator) -> bool:
    """Whether the API server calls the operator: it reviews writes, or converts between versions of a kind."""
    return bool(operator.converted) or any(part.extra == "webhooks" for part in operator.parts)
