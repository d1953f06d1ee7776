"""Quantity: amounts in resource lists, such as `100m`, `1.5Gi` or `2e3`, as exact integers.

Sums are made in billionths, the finest unit of Kubernetes, and rounded up once at the end, like the API server's own
arithmetic.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from typing import Final

from ..api.values import QUANTITIES, parse_quantity
from ..errors import InvalidObject

NANO: Final = 10**9
# The API caps larger amounts (apimachinery, api/resource/quantity.go).
LARGEST: Final = Decimal(2**63 - 1)


@lru_cache(maxsize=4096)
def nano(text: str) -> int:
    """Billionths, rounded up, at least 0. Raises: `InvalidObject` when `text` is not a quantity."""
    amount = parse_quantity(text)
    if amount is None or amount.is_signed():
        raise InvalidObject(f"{text!r} is not a quantity: write a number and a unit, such as 100m, 1.5Gi or 2e3")
    return int(QUANTITIES.scaleb(min(amount, LARGEST), 9).to_integral_value(ROUND_CEILING))


def milli(nanos: int) -> int:
    """Thousandths, rounded up: the unit of CPU."""
    return -(-nanos // 10**6)


def whole(nanos: int) -> int:
    """Units, rounded up: the unit of bytes and all other resources."""
    return -(-nanos // NANO)
