"""Changes: one difference between two releases, and whether it breaks stored objects or clients."""

from __future__ import annotations

from typing import NamedTuple


class Change(NamedTuple):
    """A difference of a definition. `path` is that of a field, such as `spec.size`, or empty."""

    path: str
    text: str
    """The rest of the sentence after the path."""

    breaks: bool = True
