"""Quantity: the amounts in resource lists, such as `100m`, `1.5Gi` or `2e3`, as exact integers.

Sums are made in billionths, of which Kubernetes keeps no fractions, and rounded up once, at their end: so the API's own
arithmetic comes to the same number.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from ..errors import InvalidObject

__all__ = ["milli", "nano", "whole"]

NANO: Final = 10**9
# The API caps whatever is larger (apimachinery, api/resource/quantity.go).
LARGEST: Final = 2**63 - 1
_FORM: Final = re.compile(r"\+?(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?(?:[eE](?P<power>[+-]?[0-9]+)|(?P<unit>\w*))")
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
# Ten to this power is beyond the cap whatever it is multiplied with, and written out in no time.
LARGEST_POWER: Final = 40


@lru_cache(maxsize=4096)
def nano(text: str) -> int:
    """Billionths, rounded up, at least 0. Raises: `InvalidObject` for what is no quantity."""
    found = _FORM.fullmatch(text)
    digits = (found["whole"] + (found["part"] or "")) if found else ""
    if found is None or not digits or (found["unit"] or "") not in {**_DECIMAL, **_BINARY}:
        raise InvalidObject(f"{text!r} is not a quantity: write a number and a unit, such as 100m, 1.5Gi or 2e3")
    unit = found["unit"] or ""
    power = int(found["power"] or _DECIMAL.get(unit, 0)) + 9 - len(found["part"] or "")
    # Beyond these bounds nothing but the length of the numbers changes.
    power = max(min(power, LARGEST_POWER), -len(digits) - LARGEST_POWER)
    amount = int(digits) << _BINARY.get(unit, 0)
    scaled: int = amount * 10**power if power >= 0 else -(-amount // 10**-power)
    return min(scaled, LARGEST * NANO)


def milli(nanos: int) -> int:
    """Thousandths, rounded up: how CPU is counted."""
    return -(-nanos // 10**6)


def whole(nanos: int) -> int:
    """Units, rounded up: how bytes and all other resources are counted."""
    return -(-nanos // NANO)
