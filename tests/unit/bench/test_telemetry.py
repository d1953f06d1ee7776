"""The bench of telemetry: every row is a figure, and the order of what costs more is the right one."""

from __future__ import annotations

import pytest

from bench import telemetry as bench
from bonny import telemetry
from bonny.telemetry import tracing


def test_who_listens_and_who_traces_pays_for_it_and_nothing_stays_switched_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert bench.main(["--seconds", "0.001"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == ["events", "figures", "traces", "imports"]
    found = {line[:-12].strip(): float(line[-12:].replace(",", "")) for line in lines if line.startswith(" ")}
    assert found["execute, nobody listens"] < found["execute, listeners: 5"]
    handling = f"a handling of {bench.STEPS} steps and 2 requests"
    assert found["what traces add to it while they are off"] < found[f"{handling}, on, none sampled"]
    assert found[f"{handling}, traces off"] < found[f"{handling}, on, all sampled"]
    assert found["modules after the import of bonny.main"] > 100
    assert found["the import of prometheus-client after it"] > 0
    assert tracing.spans is None
    assert not telemetry.detach(f"{bench.EVENT} 0")
