"""Settings: the environment variable of /metrics over TLS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic.dataclasses import dataclass

from ..run.config import Port, Variable


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSettings:
    """Settings of /metrics of one process; `VARIABLES` explains them."""

    port: Port | None = None
    """None: /metrics is in plain text, beside the probes."""


# fmt: off
VARIABLES: Final[Mapping[str, Variable]] = {
    "BONNY_SECURE_METRICS_PORT": Variable(
        "port", "a port from 1 to 65535, or 0 for any free one",
        "none; the manifest sets 8443 with Deploy(secure_metrics=True)",
        "Port on which /metrics is served over TLS to authorized clients. /metrics is then not served on "
        "BONNY_HTTP_PORT."),
}
# fmt: on
