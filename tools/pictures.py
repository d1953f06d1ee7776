"""Pictures: draws docs/images anew, from what a terminal really shows.

    python -m tools.pictures               all of them
    python -m tools.pictures run-local     one

A project is rendered and installed in a temporary folder, the commands run in a pseudo-terminal, and their output is
written as SVG with text that can be selected. `⋮` stands where lines were left out.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

import yaml
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from bonny_dev.sandbox.admin import Admin
from bonny_dev.sandbox.binaries import find_or_build
from bonny_dev.sandbox.workloads import controller_manager

from .terminal import CTRL_C, Terminal, plain

ROOT: Final = Path(__file__).resolve().parent.parent
IMAGES: Final = ROOT / "docs" / "images"
SLUG: Final = "widgets-operator"
CONTROLLER: Final = "src/widgets_operator/controllers/widget.py"
WIDEST: Final = 136
LEFT_OUT: Final = "\x1b[2m    ⋮\x1b[0m"

# Dark on light and light on dark pages alike, with a contrast of 4.5 or more.
THEME: Final = TerminalTheme(
    (0x1E, 0x22, 0x2A),
    (0xDC, 0xDF, 0xE4),
    [
        (0x1E, 0x22, 0x2A),
        (0xE8, 0x7D, 0x86),
        (0x98, 0xC3, 0x79),
        (0xE5, 0xC0, 0x7B),
        (0x61, 0xAF, 0xEF),
        (0xC6, 0x78, 0xDD),
        (0x56, 0xB6, 0xC2),
        (0xDC, 0xDF, 0xE4),
    ],
)
# Rich's own format loads a font from the Internet.
FORMAT: Final = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; \
font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-family: sans-serif; font-size: 18px; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />\
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def draw(name: str, title: str, lines: Iterable[str]) -> None:
    """Write docs/images/`name`.svg: `lines` with their colours, in a window called `title`."""
    text = "\n".join(map(cut, lines))
    width = max(len(line) for line in plain(text).splitlines()) + 1
    console = Console(record=True, width=width, file=io.StringIO(), legacy_windows=False)
    console.print(Text.from_ansi(text), soft_wrap=True)
    svg = console.export_svg(title=title, theme=THEME, code_format=FORMAT, unique_id=name)
    (IMAGES / f"{name}.svg").write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n", "utf-8")
    print(f"drew {name}.svg: {len(text.splitlines())} lines of {width}")


def cut(line: str) -> str:
    """`line`, or as much of it as is legible in a page's width; colours count for nothing."""
    shown, kept = 0, ""
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        piece = part if part.startswith("\x1b") else part[: WIDEST - shown]
        shown += 0 if part.startswith("\x1b") else len(piece)
        kept += piece
    return kept if len(plain(line)) <= WIDEST else f"{kept} …"


def typed(command: str) -> str:
    return f"\x1b[1m$ {command}\x1b[0m"


def environment(project: Path) -> dict[str, str]:
    """A person's, with the project's programs first and colours wanted."""
    foreign = ("NO_COLOR", "KUBECONFIG", "PYTHONPATH", "VIRTUAL_ENV", "UV_PYTHON")
    kept = {name: text for name, text in os.environ.items() if name not in foreign and not name.startswith("BONNY_")}
    path = os.pathsep.join([str(project / ".venv/bin"), os.environ["PATH"]])
    return {**kept, "PATH": path, "TERM": "xterm-256color", "TMPDIR": tempfile.gettempdir()}


def rendered(folder: Path) -> Path:
    """The default project, installed, with a kind of its own."""
    program = Path(sys.executable).parent
    subprocess.run(
        [str(program / "cookiecutter"), str(ROOT), "--no-input", "-o", str(folder)], check=True, capture_output=True
    )
    project = folder / SLUG
    for words in (
        ["venv", "--quiet", "--python", sys.executable, ".venv"],
        ["pip", "install", "--quiet", "--python", ".venv/bin/python", "-e", ".[dev]"],
    ):
        kept = {name: text for name, text in os.environ.items() if name not in ("UV_PYTHON", "VIRTUAL_ENV")}
        subprocess.run([str(program / "uv"), *words], cwd=project, check=True, env=kept)
    command = [str(project / ".venv/bin/invoke"), "gen-controller", "Widget", "widgets"]
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    return project


def tasks(project: Path) -> None:
    with Terminal([str(project / ".venv/bin/invoke"), "--list"], cwd=project, env=environment(project)) as terminal:
        assert terminal.ended() == 0, terminal.text
        draw("tasks", "invoke --list", [typed("invoke --list"), *terminal.text.rstrip().splitlines()])


def run_local(project: Path) -> None:
    """A sample is applied, its child is changed by a stranger, the controller is edited, and fails."""
    words = ["run-local", "--sandbox", "--reload", "--apply-samples"]
    command = [str(project / ".venv/bin/invoke"), *words]
    with Terminal(command, cwd=project, env=environment(project)) as terminal:
        at = terminal.wait_for("reconcile  child")
        named = re.search(r"export KUBECONFIG=(\S+)", terminal.text)
        assert named is not None
        meddle(Path(named[1]))
        at = terminal.wait_for("applied   WidgetController  default/widget-sample  reconcile", after=at)
        at = terminal.wait_for(" ms", after=at)
        path = project / CONTROLLER
        before = path.read_text("utf-8")
        path.write_text(
            before.replace("import Axn,", "import Retry, Axn,").replace("        settings = ", PATIENCE, 1), "utf-8"
        )
        at = terminal.wait_for("waits", after=at)
        at = terminal.wait_for("applied ", after=at)
        at = terminal.wait_for(" ms", after=at)
        path.write_text(before, "utf-8")
        at = terminal.wait_for("unchanged", after=terminal.wait_for("restarting", after=at))
        terminal.wait_for(" ms", after=at)
        terminal.press(CTRL_C)
        assert terminal.ended() == 0, terminal.text
        lines = terminal.text.partition("^C")[0].rstrip().splitlines()
        draw("run-local", "invoke run-local", [typed(f"invoke {' '.join(words)}"), *without_restarts(lines)])


def without_restarts(lines: list[str]) -> Iterator[str]:
    """The lines of the first start, and of the others the results."""
    restarted, cut_here = False, False
    for line in lines:
        restarted = restarted or "restarting" in line
        if not restarted or not line.strip() or "restarting" in line or "WidgetController  default" in line:
            yield line
            cut_here = False
        elif not cut_here:
            yield LEFT_OUT
            cut_here = True


PATIENCE: Final = """        if axn.tries == 0:
            raise Retry("no bucket yet", after=1.0)
        settings = """


def meddle(kubeconfig: Path) -> None:
    """Change the child as somebody else would."""
    known = yaml.safe_load(kubeconfig.read_text("utf-8"))
    url, token = known["clusters"][0]["cluster"]["server"], known["users"][0]["user"]["token"]
    admin = Admin(url=url, token=token, ca_file=kubeconfig.parent / "certs" / "apiserver.crt")
    path = "/api/v1/namespaces/default/configmaps/widget-sample-widget"
    admin.request("PATCH", path, {"data": {"size": "9"}}, content_type="application/merge-patch+json")
    time.sleep(1.1)  # so that the lines have times of their own


def demo(project: Path) -> None:
    """`make demo`, and of its steps those that show the product."""
    shown = {3, 5, 8, 9, 10, 11, 12, 13}
    with Terminal(
        [sys.executable, str(ROOT / "tools/demo.py")],
        cwd=ROOT,
        env=environment(project) | {"PYTHONPATH": str(ROOT / "runtime")},
    ) as terminal:
        assert terminal.ended(within_seconds=300.0) == 0, terminal.text
        lines, keep, kept = [typed("make demo")], False, True
        for line in terminal.text.splitlines():
            step = re.match(r" *(\d+)\. ", plain(line))
            if step or line.startswith("All done"):
                keep = step is None or int(step[1]) in shown
                if not keep and kept:
                    lines += [LEFT_OUT, ""]
                kept = keep
            if keep:
                lines.append(line)
        end = next(number for number, line in enumerate(lines) if line.startswith("All done"))
        draw("demo", "make demo", [*lines[:end], lines[end].partition(" Your own")[0]])


PICTURES: Final[dict[str, Callable[[Path], None]]] = {"tasks": tasks, "run-local": run_local, "demo": demo}


def main() -> None:
    arguments = argparse.ArgumentParser(description="Draw docs/images anew.")
    arguments.add_argument("names", nargs="*", choices=[[], *PICTURES], help="which (default: all)")
    names = arguments.parse_args().names or list(PICTURES)
    controller_manager(find_or_build(print), print)
    with tempfile.TemporaryDirectory(prefix="bonny-pictures-") as folder:
        project = rendered(Path(folder))
        for name in names:
            PICTURES[name](project)


if __name__ == "__main__":
    main()
