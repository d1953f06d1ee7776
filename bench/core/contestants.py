"""Contestants: who takes part."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from bench.harness.contestants import (
    BONNY,
    BONNY_UVLOOP,
    CONTROLLER_RUNTIME,
    KOPF,
    KUBE_RS,
    Makers,
    bonny,
    controller_runtime,
    kopf,
    kube_rs,
)

__all__ = ["CHILDREN", "MAKERS", "REQUIREMENTS"]

REQUIREMENTS: Final = Path(__file__).with_name("kopf-requirements.txt")

MAKERS: Final[Makers] = {
    BONNY: partial(bonny, "bench.core.bonny_operator"),
    BONNY_UVLOOP: partial(bonny, "bench.core.bonny_operator", BONNY_UVLOOP),
    CONTROLLER_RUNTIME: partial(controller_runtime, "core"),
    KUBE_RS: partial(kube_rs, "core"),
    KOPF: partial(kopf, "bench.core.kopf_operator", REQUIREMENTS),
}
CHILDREN: Final = bonny("bench.core.children_operator")
