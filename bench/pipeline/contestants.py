"""Contestants: who takes part."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from bench.core.contestants import REQUIREMENTS
from bench.harness.contestants import BONNY, CONTROLLER_RUNTIME, KOPF, Makers, bonny, controller_runtime, kopf

__all__ = ["MAKERS"]

CLIENT: Final = Path(__file__).with_name("client-requirements.txt")

MAKERS: Final[Makers] = {
    BONNY: partial(bonny, "bench.pipeline.bonny_operator"),
    CONTROLLER_RUNTIME: partial(controller_runtime, "pipeline"),
    KOPF: partial(kopf, "bench.pipeline.kopf_operator", REQUIREMENTS, CLIENT),
}
