"""The how-to of schedulers, walked from an empty folder: what is to be typed is typed, what it shows is compared.

A block is what the text before it says: "Add to `file`", "Change `file` to", "Write `file`", or the content of `file`.
In what a command prints, `...` stands for anything.
"""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bonny_dev.sandbox.binaries import find_or_build
from bonny_dev.sandbox.guard import Guard
from tests.support.baking import TEMPLATE
from tests.template.test_readme import COMMAND_SECONDS, STOP_SECONDS, Terminal, carry_out, until

PAGE = TEMPLATE / "docs" / "how-to" / "write-a-scheduler.md"
RUN = "invoke run-local --sandbox"


def parts(text: str) -> Iterator[tuple[str, str, str]]:
    """Each block: what it is, its text, and the prose between it and the one before."""
    prose = ""
    for piece in re.split(r"^(```\w+\n.*?^```\n)", text, flags=re.MULTILINE | re.DOTALL):
        block = re.fullmatch(r"```(\w+)\n(.*?)```\n", piece, re.DOTALL)
        if block is None:
            prose = " ".join(piece.split())
        else:
            yield block[1], block[2], prose


def said(expected: str, output: str) -> bool:
    """Whether `output` is what the page shows; lines of its own `...` may be none or many."""
    pattern = ""
    for line in expected.strip().splitlines():
        pattern += r"(?:.*\n)*?" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + r"\n"
    return re.fullmatch(pattern, output.strip() + "\n") is not None


class Reader:
    """A person who follows the page in two terminals."""

    def __init__(self, folder: Path) -> None:
        self.terminal = Terminal(folder=folder, at=folder / "home")
        self.terminal.at.mkdir()
        self.left_out: list[str] = []
        self._guard = Guard(folder / "running")
        self.log = folder / "run-local.log"
        self._operator: subprocess.Popen[bytes] | None = None
        self._kubeconfig = ""

    def follow(self, language: str, block: str, prose: str) -> None:
        match language:
            case "console":
                for command, _, expected in (part.partition("\n") for part in re.split(r"^\$ ", block, flags=re.M)[1:]):
                    if command.startswith("kubectl ") and shutil.which("kubectl") is None:
                        self.left_out.append(command)
                        continue
                    output = self.type(command)
                    assert not expected.strip(" .\n") or said(expected, output), f"$ {command}\n{output}"
            case _:
                self.edit(block, prose)

    def edit(self, block: str, prose: str) -> None:
        """Do with the block what the end of the text before it says."""
        asked = re.search(r"(?:(Add to|change|Write) )?`([\w./]+)`(?: to)?:$", prose)
        assert asked is not None, prose
        path = self.terminal.at / asked[2]
        match asked[1]:
            case "Add to":
                path.write_text(path.read_text("utf-8") + block, encoding="utf-8")
            case "change" | "Write":
                assert path.exists() is (asked[1] == "change"), path
                path.write_text(block, encoding="utf-8")
            case _:
                assert path.read_text("utf-8") == block, "the page shows what is generated"

    def type(self, command: str) -> str:
        """What the command prints."""
        if command == RUN:
            return self.run_local()
        if command.startswith("kubectl "):
            return self.kubectl(command)
        if command.startswith("invoke "):
            return self.terminal.run(command)
        for one in command.split(" && "):
            carry_out(self.terminal, one)
        return ""

    def run_local(self) -> str:
        program = shutil.which("invoke", path=self.terminal.env["PATH"])
        assert program is not None
        self._operator = self._guard.popen(
            [program, *RUN.split()[1:]], log_file=self.log, cwd=self.terminal.at, env=self.terminal.env
        )
        until(lambda: " in sync " in self.log.read_text("utf-8"), self._operator, self.log)
        text = self.log.read_text("utf-8")
        self._kubeconfig = re.findall(r"export KUBECONFIG=(\S+)", text)[0]
        return text.partition("ends it\n")[0] + "ends it"

    def interrupt(self) -> int:
        """Ctrl-C; the exit code."""
        assert self._operator is not None
        self._operator.send_signal(signal.SIGINT)
        return self._operator.wait(STOP_SECONDS)

    def kubectl(self, command: str) -> str:
        program, *words = shlex.split(command)
        done = subprocess.run(
            [program, *words],
            cwd=self.terminal.at,
            env={**self.terminal.env, "KUBECONFIG": self._kubeconfig},
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def close(self) -> None:
        self._guard.close()


@pytest.mark.slow  # test_gen_scheduler has the same parts, one by one
@pytest.mark.server
def test_who_follows_the_page_has_a_scheduler_at_work(tmp_path: Path) -> None:
    find_or_build()  # before a clock runs: on a fresh machine that takes minutes
    reader = Reader(tmp_path)
    try:
        for language, block, prose in parts(PAGE.read_text("utf-8")):
            reader.follow(language, block, prose)
        assert reader.interrupt() == 0
    finally:
        reader.close()
    if not reader.left_out:
        said_there = reader.log.read_text("utf-8")
        assert "bound     cheap-node  default/cheap-node-sample  cheap\n" in said_there
        assert re.search(
            r"pending   cheap-node  default/large +0/2 nodes are available: 2 Insufficient cpu\.\n", said_there
        )
    granted = (reader.terminal.at / "manifest.yaml").read_text("utf-8")
    assert all(name in granted for name in ("nodes", "pods/binding", "pods/status", "leases"))
    if reader.left_out:
        pytest.skip(f"kubectl is not installed, so {len(reader.left_out)} commands were left out")


@pytest.mark.parametrize(
    ("expected", "output", "same"),
    [
        ("cheap", "cheap", True),
        ("cheap", "dear", False),
        ("wrote a\nwrote b", "wrote a\nwrote b\n", True),
        ("wrote a", "wrote a\nwrote b", False),
        ("first\n...\nlast", "first\none\ntwo\nlast", True),
        ("first\n...\nlast", "first\nlast", True),
        ("... 5 passed in ...", "=== 5 passed in 0.1s ===", True),
        ("... 5 passed in ...", "=== 15 passed in 0.1s ===", False),
    ],
)
def test_what_the_page_shows_is_compared(expected: str, output: str, same: bool) -> None:
    assert said(expected, output) is same
