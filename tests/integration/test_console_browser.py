"""The page of `invoke console` in a headless Chromium: light, dark, narrow, by keyboard alone, and while it is gone."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bonny.console.settings import ConsoleSettings
from bonny_dev.sandbox import Sandbox
from bonny_dev.sandbox.ports import free_ports
from tests.support.chromium import CHROMIUM, Browser, chromium
from tests.support.watched import GROUP, HOSTILE, TOKEN, operator, page, serving, watched

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed here")

BODY = "(document.getElementById('body')?.innerText ?? '')"
PLACES = ("/", "/clocks", "/clocks/default/late", "/clocks/default/broken", "/~permissions")
SHAPES = {"light": (1000, 800, False), "dark": (1000, 800, True), "narrow": (360, 640, False)}
AXE = "4.14.1"
# Impacts that axe calls serious or worse.
SERIOUS = ("serious", "critical")


@pytest.fixture(scope="module")
def link(sandbox: Sandbox) -> Iterator[str]:
    with watched(sandbox) as inside, page(sandbox, inside) as found:
        yield found


@pytest.fixture
async def browser(tmp_path: Path) -> AsyncIterator[Browser]:
    async with chromium(tmp_path / "profile") as found:
        yield found
        assert found.complaints == []


def has(text: str) -> str:
    return f"{BODY}.includes({text!r})"


@pytest.mark.parametrize("shape", SHAPES)
async def test_each_page_fits_and_follows_the_scheme(link: str, browser: Browser, shape: str) -> None:
    width, height, dark = SHAPES[shape]
    await browser.show(width=width, height=height, dark=dark)
    texts = ("in sync", "default/broken", "it is not noon yet", "RuntimeError: see the operator's log", "Unused")
    for place, text in zip(PLACES, texts, strict=True):
        await browser.open(link + place)
        await browser.until(has(text))
        assert await browser.value("document.documentElement.scrollWidth") <= width, place
        assert "[object" not in await browser.value(BODY)
    background = await browser.value("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(13, 17, 23)" if dark else "rgb(255, 255, 255)")


async def test_names_and_messages_of_objects_are_text(link: str, browser: Browser) -> None:
    await browser.open(link + "/clocks/default/hostile")
    await browser.until(has(HOSTILE))
    assert await browser.value("document.querySelectorAll('img').length") == 0
    assert await browser.value("document.scripts.length") == 1


async def test_the_page_is_used_by_keyboard_alone(link: str, browser: Browser, sandbox: Sandbox) -> None:
    async def focused() -> str:
        return str(await browser.value("document.activeElement.innerText || document.activeElement.tagName"))

    async def tab_to(text: str) -> None:
        for _ in range(40):
            await browser.press("Tab")
            if await focused() == text:
                return
        raise AssertionError(f"{text!r} is not reached")

    await browser.open(link)
    await browser.until(has("ClockController"))
    await tab_to("Clock")
    assert await browser.value("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    await browser.press("Enter")
    await browser.until("!!document.querySelector('input')")
    await browser.press("/")
    assert await focused() == "INPUT"
    for letter in "calm":
        await browser.press(letter)
    await browser.until(f"{BODY}.startsWith('1 objects')")
    await tab_to("default/calm")
    await browser.press("Enter")
    await browser.until(has("accepted"))
    await tab_to("Pause")
    await browser.press("Enter")
    await browser.until("[...document.querySelectorAll('button')].some((each) => each.innerText === 'Resume')")
    path = f"/apis/{GROUP}/v1/namespaces/default/clocks/calm"
    assert sandbox.request("GET", path).body["metadata"]["annotations"]["bonny.dev/paused"] == "true"
    await tab_to("Resume")
    await browser.press("Enter")
    await browser.until("[...document.querySelectorAll('button')].some((each) => each.innerText === 'Pause')")


async def test_a_focus_stays_while_the_page_is_drawn_again(link: str, browser: Browser) -> None:
    await browser.open(link)
    await browser.until(has("ClockController"))
    await browser.value("document.querySelector('#body td a').focus(); document.getElementById('body').dataset.old = 1")
    await browser.until("!document.getElementById('body').dataset.old")
    assert await browser.value("document.activeElement.innerText") == "Clock"


async def test_the_operator_goes_and_comes_back(link: str, browser: Browser, sandbox: Sandbox) -> None:
    (port,) = free_ports(1)
    with page(sandbox, port) as other:
        await browser.open(other)
        await browser.until(has(f"the operator at http://127.0.0.1:{port} does not answer"))
        for _ in range(2):
            with serving(operator(), sandbox.kubeconfig, ConsoleSettings(port=port, token=TOKEN)):
                await browser.until(has("ClockController\nslots"))
                await browser.value("location.hash = '#/clocks'")
                await browser.until(has("succeeded"))
                await browser.value("location.hash = '#/'")
            await browser.until(has("does not answer"))
    # The tool itself ends: what is shown stays, and the page says so.
    await browser.until("document.getElementById('state').innerText.includes('What is shown is old')")
    browser.complaints.clear()  # of requests that were refused meanwhile


def axe(folder: Path) -> str:
    """The source of axe-core, from the package registry."""
    made = subprocess.run(
        ["npm", "pack", "--silent", f"axe-core@{AXE}"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if made.returncode:
        pytest.skip(f"axe-core is not to be had: {made.stderr[-200:]}")
    subprocess.run(["tar", "-xzf", made.stdout.strip()], cwd=folder, check=True)
    return (folder / "package" / "axe.min.js").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.skipif(not any(os.access(f"{each}/npm", os.X_OK) for each in os.get_exec_path()), reason="there is no npm")
async def test_axe_has_no_serious_finding(link: str, browser: Browser, tmp_path: Path) -> None:
    source, found = axe(tmp_path), []
    for shape, (width, height, dark) in SHAPES.items():
        await browser.show(width=width, height=height, dark=dark)
        for place in PLACES:
            await browser.open(link + place)
            await browser.until("document.getElementById('body')?.innerText")
            await browser.value(source)
            violations = await browser.value("axe.run().then((found) => found.violations)")
            found += [
                (shape, place, each["id"], each["impact"], [node["html"] for node in each["nodes"]][:3])
                for each in violations
            ]
    assert [each for each in found if each[3] in SERIOUS] == []
    assert {each[2] for each in found} == set()
