"""Doctor, sharding: the buckets of each replica, and whether the API server selects objects by their hash."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from bonny.client.api import Client
from bonny.client.errors import refusal
from bonny.client.request import ApiRequest, path_of
from bonny.core.objects import decode_failure
from bonny.operator import Operator
from bonny.resource import Resource
from bonny.run.leader import LEASE
from bonny.sharding.assignment import BITS, identity_of_all
from bonny.sharding.selection import shard_range
from bonny.sharding.terms import MEMBER_LABEL

from .wrong import Wrong


async def shared(client: Client, operator: Operator, namespace: str) -> str:
    """How the work is shared, and a line for each replica with its buckets and since when it has them.

    Raises: `Wrong` if replicas share it in another way, or a bucket has no holder; `ApiError`.
    """
    leases, selects = await _leases(client, namespace)
    own = next((each for each in leases if each["metadata"]["name"] == operator.name), None)
    expected, holder = identity_of_all(operator.sharding.buckets), _holder(own)
    if not holder:
        raise Wrong(f"no replica of {namespace}/{operator.name} shares the work: start one, or name its namespace")
    if holder != expected:
        wait = "replicas of this code stand by until it ends"
        raise Wrong(f"the lease {namespace}/{operator.name} is held as {holder}, the code expects {expected}: {wait}")
    held: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for each in leases:
        name, labels = each["metadata"]["name"], each["metadata"].get("labels") or {}
        bucket = name.removeprefix(f"{operator.name}-bucket-")
        if labels.get(MEMBER_LABEL) == operator.name and bucket.isdecimal() and _holder(each):
            held[_holder(each)].append((int(bucket), each["spec"].get("acquireTime", "")))
    lines = [_line(replica, sorted(buckets)) for replica, buckets in sorted(held.items())]
    found = {bucket for buckets in held.values() for bucket, _ in buckets}
    if lacking := [str(bucket) for bucket in range(operator.sharding.buckets) if bucket not in found]:
        raise Wrong(f"buckets without a holder: {', '.join(lacking)}; look again in half a minute", *lines)
    gate = (
        "the API server selects objects by their hash, so each replica receives its part"
        if selects
        else "the API server has no shardSelector, so each replica receives all handled objects, and its own children"
    )
    return "\n".join([f"{operator.sharding.buckets} buckets by fnv1a64 in {len(held)} replicas; {gate}", *lines])


async def _leases(client: Client, namespace: str) -> tuple[list[Resource], bool]:
    """The Leases, and whether the server has the feature: only then a list of a built-in kind repeats the selector."""
    query = {"shardSelector": shard_range(0, 2**BITS)}
    answer = await client.exchange(ApiRequest("GET", path_of(LEASE, namespace), query))
    if answer.status == 500:
        answer = await client.exchange(ApiRequest("GET", path_of(LEASE, namespace)))
    if answer.status != 200:
        raise refusal(decode_failure(answer.status, answer.body), verb="list", resource=LEASE.resource)
    body: dict[str, Any] = msgspec.json.decode(answer.body)
    return body["items"] or [], "shardInfo" in body["metadata"]


def _holder(lease: Resource | None) -> str:
    """The holder; empty if there is none, or its duration has passed twice, as clocks of machines differ."""
    spec = (lease or {}).get("spec") or {}
    renewed, duration = spec.get("renewTime"), spec.get("leaseDurationSeconds") or 0
    if not renewed or datetime.now(UTC) - datetime.fromisoformat(renewed) > timedelta(seconds=2 * duration):
        return ""
    return str(spec.get("holderIdentity") or "")


def _line(replica: str, buckets: list[tuple[int, str]]) -> str:
    """One replica: its buckets, and since when it has the first and the last one of them."""
    times = sorted(time.partition(".")[0] for _, time in buckets)
    since = times[0] if times[0] == times[-1] else f"{times[0]} to {times[-1]}"
    return f"{replica}: {', '.join(str(bucket) for bucket, _ in buckets)}; since {since}"
