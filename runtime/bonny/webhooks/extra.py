"""Extra: how webhooks plug into an operator. It loads what they need only for operators that have some."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..extras import Extra, ExtraRun, Needed
from ..operator import Operator
from .settings import VARIABLES, WebhookSettings

if TYPE_CHECKING:
    from ..run.process import Process


class Webhooks(Extra):
    """Admission webhooks, and conversion between versions whose fields differ."""

    settings = WebhookSettings
    variables = VARIABLES

    def rules(self, operator: Operator, *, namespace: str, deployed: bool) -> Iterator[Needed]:
        if not _is_called(operator):
            return
        from .admission import Admission
        from .names import certificate_rules

        for admission in operator.of(Admission):
            for rule in admission.rules:
                yield admission.__name__, None, rule
        if deployed:
            for where, rules in certificate_rules(operator, namespace=namespace).items():
                for rule in rules:
                    yield "the certificate of the webhooks", where, rule

    def run(self, process: Process) -> ExtraRun | None:
        if not _is_called(process.operator):
            return None
        from .serving import WebhookRun

        return WebhookRun(process)


def _is_called(operator: Operator) -> bool:
    """Whether the API server calls this operator."""
    return bool(operator.converted) or any(part.extra == "webhooks" for part in operator.parts)


EXTRA = Webhooks()
