"""Settings: the environment variables of webhooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import Field
from pydantic.dataclasses import dataclass

from ..run.config import Port, Variable


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """Settings of the webhooks of one process. Times are seconds; `VARIABLES` explains each of them."""

    port: Port = 10_250
    certificate: str | None = None
    """None: in a Secret."""

    drain: Annotated[float, Field(ge=0, le=60)] = 0.0


# fmt: off
VARIABLES: Final[Mapping[str, Variable]] = {
    "BONNY_WEBHOOK_PORT": Variable(
        "port", "a port from 1 to 65535, or 0 for any free one", "10250",
        "Port on which webhooks are served, on the address of BONNY_HTTP_HOST, if the operator has any."),
    "BONNY_WEBHOOK_CERTIFICATE": Variable(
        "certificate", "the path of a folder with tls.crt and tls.key",
        "none: the Secret <operator>-webhook-tls", "Certificate of the webhooks outside of a cluster."),
    "BONNY_DRAIN_SECONDS": Variable(
        "drain", "a number of seconds from 0 to 60", "0; the manifest sets 10 for an operator with webhooks",
        "Seconds to keep serving webhooks after SIGTERM, because API servers reuse open connections."),
}
# fmt: on
