"""Wrong: a failed check of `invoke doctor`."""

from __future__ import annotations

from bonny.errors import UsageError


class Wrong(UsageError):
    """A check failed: a sentence, and lines that belong to it."""

    def __init__(self, text: str, *detail: str) -> None:
        super().__init__(text)
        self.detail = detail
