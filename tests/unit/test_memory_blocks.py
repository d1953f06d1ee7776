"""What the process asks of its C library; in a process of its own, for which it holds."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

RUNTIME = Path(__file__).parents[2] / "runtime"
READS = 500
# `recv` takes and shrinks a block as the reads of asyncio's TLS do; a call of the system shows as a page fault.
SCRIPT = f"""
import resource, socket
from bonny.main import _keep_large_blocks_apart
_keep_large_blocks_apart()
one, other = socket.socketpair()
def read():
    one.send(b"x")
    other.recv(256 * 1024)
read()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range({READS}):
    read()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no such call")
def test_a_read_of_tls_takes_no_memory_from_the_system() -> None:
    """Regression: each read cost 25 us instead of 2, a tenth of the time of a busy operator."""
    # The folder that it runs in is the first place where it looks for the package.
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, cwd=RUNTIME, capture_output=True, text=True, check=True)

    assert int(done.stdout) < READS / 10
