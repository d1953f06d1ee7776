"""DNS record: an external HTTP API; its address and token come from the environment, its session from `lifespan`.

The API makes each record under the UID of its object. So the call may be repeated: after a crash, or an
answer that was lost, it finds the record that is there already. docs/how-to/external-systems.md explains each part.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import ClientSession, ClientTimeout

from bonny import (
    Axn,
    Controller,
    Deploy,
    Field,
    FromSecret,
    Operator,
    Spec,
    Status,
    Terminal,
    Throttled,
    Version,
    WithConditions,
)
from bonny.errors import UsageError


class DnsRecordSpec(Spec):
    """The desired state."""

    host: str = Field(min_length=1)
    addresses: list[str] = Field(min_length=1)


class DnsRecordStatus(Status, WithConditions):
    """The observed state."""


class DnsRecord(Version):
    """Addresses of a host, kept in an external DNS service."""

    kind = "DnsRecord"
    plural = "dnsrecords"
    version = "v1"
    storage = True
    hub = True
    spec: DnsRecordSpec
    status: DnsRecordStatus


class DnsRecordController(Controller[DnsRecord]):
    """`reconcile_every` corrects changes that other clients make there: no watch reports them."""

    reconcile_every = 600.0
    max_concurrent = 4
    timeout = 30.0

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        headers = {"Authorization": f"Bearer {setting('DNS_TOKEN')}"}
        async with ClientSession(setting("DNS_URL"), headers=headers, timeout=ClientTimeout(total=10)) as self.session:
            yield

    async def reconcile(self, axn: Axn[DnsRecord]) -> None:
        wanted = {"host": axn.spec.host, "addresses": axn.spec.addresses}
        if await self.call("GET", axn.uid) != wanted:
            await self.call("PUT", axn.uid, json=wanted)
        axn.set_condition("Ready", True, message=f"{axn.spec.host} is in the DNS")

    async def finalize(self, axn: Axn[DnsRecord]) -> None:
        await self.call("DELETE", axn.uid)

    async def call(self, method: str, uid: str, **body: Any) -> Any:
        """The answer of the API; None when there is no such record, which is the aim of a deletion."""
        async with self.session.request(method, f"/records/{uid}", **body) as answer:
            if answer.status == 429:
                raise Throttled("the DNS API: 429", after=float(answer.headers.get("Retry-After", 30)))
            if answer.status == 422:
                raise Terminal(f"the DNS API refuses the record: {await answer.text()}")
            if answer.status == 404 and method != "PUT":
                return None
            answer.raise_for_status()
            return await answer.json()


def setting(name: str) -> str:
    """An environment variable. Read when the operator starts, so a test can set it."""
    if not os.environ.get(name):
        raise UsageError(f"{name} is not set: the operator cannot reach the DNS API without it")
    return os.environ[name]


operator = Operator(
    name="dns-records",
    group="dns.example.com",
    controllers=[DnsRecordController],
    deploy=Deploy(
        env={"DNS_URL": "https://dns.example.com:8443", "DNS_TOKEN": FromSecret("dns-credentials", "token")},
        egress={"203.0.113.0/24": (8443,)},
    ),
)
