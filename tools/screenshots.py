"""Screenshots: makes the pictures of the console in docs/images, with Chromium, from a sandbox with an operator in it.

python tools/screenshots.py
"""

from __future__ import annotations

import asyncio
import base64
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from bonny_dev.sandbox import Sandbox  # noqa: E402
from tests.support.chromium import CHROMIUM, chromium  # noqa: E402
from tests.support.watched import page, watched  # noqa: E402

IMAGES: Final = ROOT / "docs" / "images"
# Place, width, height, whether dark, and a text that is there once the page is drawn.
PICTURES: Final = {
    "console-overview": ("/", 1000, 860, False, "Next retries"),
    "console-list": ("/clocks", 1000, 420, True, "it is not noon yet"),
    "console-object": ("/clocks/default/calm", 1000, 900, False, "~status.conditions"),
    "console-narrow": ("/clocks/default/late", 400, 900, True, "it is not noon yet"),
}


async def photograph(link: str) -> None:
    """Write the pictures."""
    with tempfile.TemporaryDirectory() as profile:
        async with chromium(Path(profile)) as browser:
            for name, (place, width, height, dark, text) in PICTURES.items():
                await browser.show(width=width, height=height, dark=dark)
                await browser.open(link + place)
                if name == "console-object":
                    # So that it has a run whose fields the page saw.
                    await browser.until("document.querySelector('button')?.innerText === 'Reconcile now'")
                    await browser.value("document.querySelector('button').click()")
                await browser.until(f"document.getElementById('body')?.innerText.includes({text!r})")
                shot = await browser.send("Page.captureScreenshot")
                (IMAGES / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))
                print(f"wrote docs/images/{name}.png")


def main() -> int:
    if CHROMIUM is None:
        print("Chromium is not installed: install it, and run this again", file=sys.stderr)
        return 2
    with Sandbox() as sandbox, watched(sandbox) as inside, page(sandbox, inside) as link:
        asyncio.run(photograph(link))
    return 0


if __name__ == "__main__":
    sys.exit(main())
