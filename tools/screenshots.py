"""Screenshots: makes the pictures of the console in docs/images, with Chromium, from a sandbox with an operator in it.

python tools/screenshots.py
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from bonny_dev.sandbox import Sandbox  # noqa: E402
from tests.support.watched import page, watched  # noqa: E402

IMAGES: Final = ROOT / "docs" / "images"
DARK: Final = ("--force-dark-mode", "--blink-settings=preferredColorScheme=0")
# Place, width, height, and flags of each picture.
PICTURES: Final = {
    "console-overview": ("/", 1000, 640, ()),
    "console-list": ("/clocks", 1000, 420, DARK),
    "console-object": ("/clocks/default/late", 1000, 1000, ()),
}


def main() -> int:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        print("Chromium is not installed: install it, and run this again", file=sys.stderr)
        return 2
    with Sandbox() as sandbox, watched(sandbox) as inside, page(sandbox, inside) as link:
        for name, (place, width, height, flags) in PICTURES.items():
            with tempfile.TemporaryDirectory() as profile:
                fixed = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=6000"]
                where = [f"--user-data-dir={profile}", f"--screenshot={IMAGES / name}.png"]
                size = f"--window-size={width},{height}"
                subprocess.run(
                    [chromium, *fixed, *where, size, *flags, link + place], check=True, capture_output=True, timeout=120
                )
            print(f"wrote docs/images/{name}.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
