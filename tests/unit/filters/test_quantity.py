"""Amounts as Kubernetes writes them, as exact integers."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bonny.errors import InvalidObject
from bonny.filters.quantity import milli, nano, whole

UNITS = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1), "k": Fraction(10**3),
    "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12), "P": Fraction(10**15), "E": Fraction(10**18),
    "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30), "Ti": Fraction(2**40), "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("100m", 100_000_000),
        ("1", 10**9),
        ("1.5", 1_500_000_000),
        (".5", 500_000_000),
        ("5.", 5 * 10**9),
        ("+1", 10**9),
        ("128Mi", 128 * 2**20 * 10**9),
        ("1e3", 1000 * 10**9),
        ("1E3", 1000 * 10**9),
        ("1E", 10**18 * 10**9),
        ("12e-1", 1_200_000_000),
        ("0", 0),
    ],
)
def test_each_form_is_read(text: str, expected: int) -> None:
    assert nano(text) == expected


@pytest.mark.parametrize("text", ["", ".", "m", "1.2.3", "1x", "1e", "1KiB", "1 Gi", "-1", "0x10", "1_000", "\u0661"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(InvalidObject, match="is not a quantity"):
        nano(text)


def test_what_is_finer_than_a_billionth_is_rounded_up() -> None:
    assert nano("0.5n") == 1
    assert nano("1e-300") == 1
    assert nano("0e-300") == 0


def test_what_is_too_large_is_capped_as_the_api_caps_it() -> None:
    assert whole(nano("9e999999999")) == 2**63 - 1
    assert whole(nano("16Ei")) == 2**63 - 1


def test_sums_are_rounded_up_once() -> None:
    assert milli(nano("0.4m") + nano("0.4m")) == 1
    assert whole(nano("100m") * 11) == 2


@given(
    digits=st.integers(0, 10**7),
    decimals=st.integers(0, 6),
    unit=st.sampled_from([unit for unit in UNITS if UNITS[unit] < 10**9]),
)
def test_every_amount_is_exact(digits: int, decimals: int, unit: str) -> None:
    padded = str(digits).rjust(decimals + 1, "0")
    text = f"{padded[: len(padded) - decimals]}.{padded[len(padded) - decimals :]}" if decimals else padded

    assert nano(text + unit) == ceil(Fraction(digits, 10**decimals) * UNITS[unit] * 10**9)
