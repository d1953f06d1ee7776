"""Contestants: who takes part."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from bench.core.contestants import REQUIREMENTS
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

__all__ = ["MAKERS"]

CLIENT: Final = Path(__file__).with_name("client-requirements.txt")

MAKERS: Final[Makers] = {
    BONNY: partial(bonny, "bench.pipeline.bonny_operator"),
    BONNY_UVLOOP: partial(bonny, "bench.pipeline.bonny_operator", BONNY_UVLOOP),
    CONTROLLER_RUNTIME: partial(controller_runtime, "pipeline"),
    KUBE_RS: partial(kube_rs, "pipeline"),
    KOPF: partial(kopf, "bench.pipeline.kopf_operator", REQUIREMENTS, CLIENT),
}
