"""The developer tools as a distribution: the runtime finds them by entry points; here they are sources beside it."""

from __future__ import annotations

from pathlib import Path

from bonny_dev.wheel import ENTRY_POINTS


def entry_points_in(folder: Path) -> str:
    """A folder for `sys.path` or PYTHONPATH in which the entry points of the tools' wheel are installed."""
    info = folder / "installed" / "bonny_dev-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bonny-dev\nVersion: 0\n", "utf-8")
    (info / "entry_points.txt").write_bytes(ENTRY_POINTS)
    return str(info.parent)
