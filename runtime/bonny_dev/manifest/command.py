"""Command: writes a manifest to a file or to the terminal, as `invoke manifest` does.

write(to_yaml(documents(operator, image="registry.example.com/widgets-operator:1.0.0")), "manifest.yaml")
"""

from __future__ import annotations

import sys
from pathlib import Path

from bonny.errors import UsageError

from .. import files


def write(text: str, out: str = "manifest.yaml") -> None:
    """Write the manifest to the file `out`, all or nothing, or to the standard output for `-`.

    Raises: `UsageError` when the file cannot be written.
    """
    if out == "-":
        sys.stdout.write(text)
        return
    try:
        files.write(Path(out), text, mode=0o644)
    except OSError as error:
        raise UsageError(
            f"the manifest cannot be written to {out} ({error.strerror}): name another file, or - for the terminal"
        ) from None
