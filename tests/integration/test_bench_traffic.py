"""The traffic of the benches: nothing of it is left when it was sent."""

from __future__ import annotations

import asyncio
import gc
import json
import warnings

from bench.harness import traffic
from bonny_dev.sandbox import Sandbox


def test_no_connection_outlives_its_event_loop(sandbox: Sandbox) -> None:
    """Regression: some answers were given up half read, and nobody awaited the farewells of such connections."""
    made = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"generateName": "long-", "labels": {"of": "traffic"}},
        "data": {"text": "x" * 900_000},
    }
    for _ in range(10):
        requests = [(traffic.CONFIG_MAPS, json.dumps(made).encode())] * 6
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            asyncio.run(traffic.send_all(sandbox, "POST", requests))
            gc.collect()
        assert [str(each.message) for each in found] == []
    sandbox.request("DELETE", f"{traffic.CONFIG_MAPS}?labelSelector=of%3Dtraffic")
