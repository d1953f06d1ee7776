"""Contestants: who takes part."""

from __future__ import annotations

from functools import partial
from typing import Final

from bench.harness.contestants import BONNY, BONNY_UVLOOP, CONTROLLER_RUNTIME, Makers, bonny, controller_runtime

__all__ = ["MAKERS"]

MAKERS: Final[Makers] = {
    BONNY: partial(bonny, "bench.webhooks.bonny_operator"),
    BONNY_UVLOOP: partial(bonny, "bench.webhooks.bonny_operator", BONNY_UVLOOP),
    CONTROLLER_RUNTIME: partial(controller_runtime, "webhooks"),
}
