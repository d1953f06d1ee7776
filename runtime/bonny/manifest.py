"""The former name of `bonny_dev.manifest`, for one release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._moved import forward

forward(__name__)

if TYPE_CHECKING:
    from bonny_dev.manifest import *  # noqa: F403  the same names
