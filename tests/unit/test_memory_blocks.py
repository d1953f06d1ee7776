"""What the image asks of the C library by its environment; in a process of its own, for which it holds."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from tests.support.dockerfile import allocator_settings

READS = 500
# `recv` takes and shrinks a block as the reads of asyncio's TLS do; a call of the system shows as a page fault.
SCRIPT = f"""
import resource, socket
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


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no such variables")
def test_a_read_of_tls_takes_no_memory_from_the_system() -> None:
    """Regression: each read cost 25 us instead of 2, a tenth of the time of a busy operator."""
    settings = allocator_settings()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env={**os.environ, **settings}, capture_output=True, text=True, check=True
    )

    assert settings.keys() == {"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"}
    assert int(done.stdout) < READS / 10
