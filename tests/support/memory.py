"""Memory: what a process holds, and held at most since it was last asked (Linux)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

__all__ = ["MIB", "forget_peak", "peak", "resident"]

MIB: Final = 1024 * 1024
# Resets VmHWM to what is resident now (proc(5)).
RESET_PEAK: Final = "5"


def resident(pid: int) -> float:
    """Resident memory, in MiB."""
    return _field(pid, "VmRSS")


def peak(pid: int) -> float:
    """The most that was resident since the start or `forget_peak`, in MiB."""
    return _field(pid, "VmHWM")


def forget_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text(RESET_PEAK, "ascii")


def _field(pid: int, name: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    (value,) = [line.split()[1] for line in lines if line.startswith(f"{name}:")]
    return int(value) / 1024
