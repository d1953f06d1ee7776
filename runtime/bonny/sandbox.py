"""The former name of `bonny_dev.sandbox`, for one release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._moved import forward

forward(__name__)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
