"""Deliver: the last step of rendering a repository: vendor/ gets the runtime with its extras, and the tools as a wheel.

The template's hook does it. Where hooks do not run, the tools lie in vendor/bonny_dev as source, and the repair is, in
the folder of the repository: `PYTHONPATH=vendor python -m bonny_dev.deliver`. It uses the standard library alone.
"""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

from . import wheel

PROJECT = "pyproject.toml"


def deliver(root: Path) -> None:
    """Pack the tools of the repository at `root`, and leave only the extras that its pyproject.toml names."""
    vendor = root / "vendor"
    for cache in wheel.CACHES:
        for folder in list(vendor.rglob(cache)):
            shutil.rmtree(folder)
    runtime = wheel.contents(vendor / "bonny")
    name, packed = wheel.pack(wheel.contents(vendor / "bonny_dev"), runtime)
    text = (root / PROJECT).read_bytes().decode()
    kept = wheel.selected(runtime, tomllib.loads(text)["tool"]["bonny"].get("extras", ()))
    for earlier in vendor.glob(wheel.PATTERN):  # where an existing repository is rendered over
        earlier.unlink()
    (vendor / name).write_bytes(packed)
    for left_out in runtime.keys() - kept:
        (vendor / "bonny" / left_out).unlink()
    for folder in sorted((path for path in (vendor / "bonny").rglob("*") if path.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()
    for record, data in wheel.records(kept, wheel.version_of(name)).items():
        (vendor / "bonny" / record).write_bytes(data)
    (root / PROJECT).write_bytes(wheel.with_name(text, name).encode())
    shutil.rmtree(vendor / "bonny_dev")


if __name__ == "__main__":
    deliver(Path.cwd())
