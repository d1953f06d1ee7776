"""Measure: what a process has used so far, as Linux tells it in /proc."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cpu_seconds", "fine_cpu_seconds", "peak_megabytes", "resident_megabytes"]


def cpu_seconds(pid: int) -> float:
    """User and system time of all threads of a process, in steps of 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def fine_cpu_seconds(pid: int) -> float:
    """User and system time of the threads that a process has now, in steps of 1 ns."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text("utf-8").split()[0]) for thread in threads) / 1e9


def resident_megabytes(pid: int) -> float:
    """Resident memory of a process now; 1 MB is 2**20 bytes."""
    return _status(pid, "VmRSS") / 1024


def peak_megabytes(pid: int) -> float:
    """The most resident memory that a process ever had."""
    return _status(pid, "VmHWM") / 1024


def _status(pid: int, name: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    return int(next(line for line in lines if line.startswith(f"{name}:")).split()[1])
