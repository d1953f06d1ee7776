"""How many examples a property test that needs another number than most draws."""

from hypothesis import settings

USUAL = 100


def examples(number: int) -> int:
    """Of `number` as many as the profile allows: a fifth in `make check`, all of them elsewhere."""
    return max(1, number * settings.default.max_examples // USUAL)
