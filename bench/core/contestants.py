"""Contestants: who takes part."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from bench.harness.contestants import BONNY, CONTROLLER_RUNTIME, KOPF, Makers, bonny, controller_runtime, kopf

__all__ = ["CHILDREN", "MAKERS", "REQUIREMENTS"]

REQUIREMENTS: Final = Path(__file__).with_name("kopf-requirements.txt")

MAKERS: Final[Makers] = {
    BONNY: partial(bonny, "bench.core.bonny_operator"),
    CONTROLLER_RUNTIME: partial(controller_runtime, "core"),
    KOPF: partial(kopf, "bench.core.kopf_operator", REQUIREMENTS),
}
CHILDREN: Final = bonny("bench.core.children_operator")
