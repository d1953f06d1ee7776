"""Logging: what a line tells, for people and for machines."""

from __future__ import annotations

import asyncio
import contextvars
import io
import json
import logging
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bonny.calling import call
from bonny.carried import of_tools
from bonny.core.queue import Reason
from bonny.errors import OptionError
from bonny.kinds import Kind
from bonny.resource import Key
from bonny.telemetry import logging as ours
from bonny.telemetry.logging import Form, about, configure
from bonny_dev.console_log import SCHEDULER, WORKER, console
from bonny_dev.wheel import contents, pack

log = logging.getLogger("test.logging")

JSON = None


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    root, libraries = logging.getLogger(), [logging.getLogger(name) for name in ours.LIBRARIES]
    before = root.handlers[:], root.level, [library.level for library in libraries]
    flags = logging.logThreads, logging.logProcesses, logging.logMultiprocessing
    yield
    root.handlers[:], root.level = before[0], before[1]
    for library, level in zip(libraries, before[2], strict=True):
        library.setLevel(level)
    logging.logThreads, logging.logProcesses, logging.logMultiprocessing = flags


@pytest.fixture
def lines() -> Any:
    stream = io.StringIO()
    configure(JSON, stream=stream)
    return lambda: [json.loads(line) for line in stream.getvalue().splitlines()]


async def test_every_line_of_a_handling_tells_its_object_its_reasons_and_its_id_also_from_threads(lines: Any) -> None:
    def in_a_thread() -> None:
        assert threading.current_thread() is not threading.main_thread()
        log.info("thread")

    async def handle(name: str) -> None:
        about(controller="Widgets", object=Key("n", name), reasons=frozenset({Reason.CHILD, Reason.ADDED}))
        log.info("before")
        await asyncio.sleep(0)
        await call(in_a_thread)
        await asyncio.gather(asyncio.to_thread(in_a_thread))

    await asyncio.gather(asyncio.create_task(handle("a")), asyncio.create_task(handle("b")))
    log.info("nothing is handled here")

    *told, other = lines()
    assert [line["message"] for line in told].count("thread") == 4
    assert {(line["controller"], line["object"], line["reasons"]) for line in told} == {
        ("Widgets", "n/a", "added,child"),
        ("Widgets", "n/b", "added,child"),
    }
    ids = {line["object"]: line["reconcile_id"] for line in told}
    assert len(set(ids.values())) == 2
    assert all(line["reconcile_id"] == ids[line["object"]] for line in told)
    assert not {"controller", "object", "reasons", "reconcile_id"} & set(other)


async def test_what_a_line_says_itself_beats_what_is_known_of_the_handling(lines: Any) -> None:
    async def handle() -> None:
        about(object="n/a", task="t")
        log.info("said", extra={"object": "n/child"})

    await asyncio.create_task(handle())
    (line,) = lines()
    assert (line["object"], line["task"]) == ("n/child", "t")


async def test_a_second_handling_in_the_same_task_has_an_id_of_its_own_and_nothing_of_the_first(lines: Any) -> None:
    async def repeat() -> None:
        about(task="t", state="one")
        log.info("first")
        about(task="t")
        log.info("second")

    await asyncio.create_task(repeat())
    first, second = lines()
    assert first["reconcile_id"] != second["reconcile_id"]
    assert "state" not in second


@pytest.mark.parametrize(("stream", "no_colour", "coloured"), [
    (Terminal, "", True),
    (Terminal, "1", False),
    (io.StringIO, "", False),
])  # fmt: skip
def test_only_a_terminal_gets_colours_and_only_if_it_wants_them(
    monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO], no_colour: str, coloured: bool
) -> None:
    monkeypatch.setenv("NO_COLOR", no_colour)
    told = stream()
    configure(console, stream=told)

    log.warning("it failed", extra={"object": "n/a", "error": "no way"})

    line = told.getvalue()
    assert ("\033[33m" in line) is coloured
    for code in ("\033[33m", "\033[2m", "\033[1m", "\033[0m"):
        line = line.replace(code, "")
    assert line.split(maxsplit=1)[1].split() == ["warning", "it", "failed", "object=n/a", 'error="no', 'way"']


def worker_line(level: int, message: str, **extra: object) -> str:
    told = io.StringIO()
    configure(console, level=logging.DEBUG, stream=told)
    about(controller="Widgets", object=Key("n", "a"), reasons=frozenset({Reason.ADDED}))
    logging.getLogger(WORKER).log(level, message, extra={"controller": "Widgets", "object": "n/a", **extra})
    (line,) = told.getvalue().splitlines()
    return line.partition(" ")[2]


@pytest.mark.parametrize(
    ("level", "message", "extra", "line"),
    [
        (
            logging.INFO,
            "reconciled",
            {"action": "add", "seconds": 0.0214},
            "applied   Widgets  n/a  add        added       21 ms",
        ),
        (
            logging.DEBUG,
            "reconciled",
            {"action": "add", "seconds": 0.0},
            "unchanged Widgets  n/a  add        added        0 ms",
        ),
        (
            logging.WARNING,
            "reconcile failed",
            {"action": "add", "seconds": 1.5, "error": 'two\nlines \x1b[31m"quoted"', "retry_in_seconds": 0.25},
            'failed    Widgets  n/a  add        added     1500 ms  two\\nlines \\u001b[31m"quoted"; next try in 0.2 s',
        ),
        (
            logging.INFO,
            "retry requested",
            {"seconds": 0.001, "error": "not yet", "retry_in_seconds": 5.0},
            "retry     Widgets  n/a             added        1 ms  not yet; next try in 5.0 s",
        ),
        (
            logging.WARNING,
            "stopped until the object changes",
            {"seconds": 0.001, "error": "never"},
            "stopped   Widgets  n/a             added        1 ms  never",
        ),
    ],
)
def test_a_person_reads_each_handling_as_one_aligned_line(
    level: int, message: str, extra: dict[str, object], line: str
) -> None:
    assert contextvars.copy_context().run(worker_line, level, message, **extra) == line


def test_a_person_reads_each_decision_of_a_scheduler_as_one_line() -> None:
    told = io.StringIO()
    configure(console, level=logging.DEBUG, stream=told)
    scheduler = logging.getLogger(SCHEDULER)

    scheduler.debug("no node", extra={"scheduler": "even", "pod": "default/large", "why": "0/2 nodes\nare available"})
    scheduler.debug("bound", extra={"scheduler": "even", "pod": "default/a", "node": "n1"})

    assert [line.partition(" ")[2] for line in told.getvalue().splitlines()] == [
        "pending   even  default/large  0/2 nodes\\nare available",
        "bound     even  default/a      n1",
    ]


def test_a_person_gets_no_ids_and_a_machine_does() -> None:
    told = io.StringIO()
    configure(console, stream=told)

    def handle() -> None:
        about(object="n/a", reasons="added")
        log.info("from a handler", extra={"bucket": "b"})

    contextvars.copy_context().run(handle)
    assert told.getvalue().split()[1:] == ["info", "from", "a", "handler", "bucket=b", "object=n/a"]


def test_a_person_reads_a_traceback_from_their_own_code_on(lines: Any) -> None:
    def fails() -> None:
        raise RuntimeError("on purpose")

    told = io.StringIO()
    try:
        asyncio.run(call(fails))
    except RuntimeError:
        log.exception("it failed")
        configure(console, stream=told)
        log.exception("it failed")
    (line,) = lines()
    assert "bonny/calling.py" in line["exception"]
    assert "in fails" in told.getvalue()


def failure(number: int) -> RuntimeError:
    """An error as handlers raise it, from one of two lines."""
    try:
        if number == 1:
            raise RuntimeError("one")
        raise RuntimeError("two")
    except RuntimeError as error:
        return error


@pytest.mark.parametrize("form", [JSON, console])
def test_the_traceback_of_an_error_that_repeats_is_written_once(form: Form | None) -> None:
    told = io.StringIO()
    configure(form, stream=told)
    for number in (1, 1, 2, 1):
        log.warning("reconcile failed", exc_info=failure(number))

    assert told.getvalue().count("Traceback") == 2
    assert "occurrence" not in told.getvalue().partition("\n")[0]
    last = told.getvalue().splitlines()[-1]
    if form is JSON:
        assert json.loads(last)["occurrences"] == 3
    else:
        assert last.endswith("reconcile failed; traceback above, occurrence 3")


def test_an_hour_later_the_traceback_is_written_again(lines: Any) -> None:
    error = failure(1)
    for created in (0.0, 1.0, ours.TRACEBACK_SECONDS + 1.0):
        values = {"msg": "it failed", "levelno": logging.WARNING, "created": created}
        record = logging.makeLogRecord({**values, "exc_info": (type(error), error, error.__traceback__)})
        logging.getLogger().handle(record)

    assert ["exception" in line for line in lines()] == [True, False, True]


def test_errors_that_never_repeat_take_no_memory() -> None:
    formatter = ours._Json()
    for number in range(3 * ours.KNOWN_ERRORS):
        error = type(f"Error{number}", (Exception,), {})()
        assert formatter.occurrences(logging.makeLogRecord({"exc_info": (type(error), error, None)})) == 1

    assert len(formatter._known) == ours.KNOWN_ERRORS


def test_an_error_of_the_runtime_itself_keeps_its_whole_traceback() -> None:
    told = io.StringIO()
    configure(console, stream=told)
    try:
        Kind("v1", "Nothing")
    except OptionError as error:
        error.__traceback__ = error.__traceback__.tb_next if error.__traceback__ else None
        log.warning("it failed", exc_info=error)
    assert "kinds.py" in told.getvalue()


# --- texts that nobody expects ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [JSON, console])
@pytest.mark.parametrize("logger", ["test.logging", WORKER])
def test_a_text_that_cannot_be_encoded_is_logged_with_escapes(
    form: Form | None, logger: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Regression: the line was lost. `os.fsdecode` makes such texts of the output of commands."""
    told = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")  # as strict as a file
    configure(form, stream=told)
    try:
        raise RuntimeError("file \udcff")
    except RuntimeError as error:
        extra = {"error": str(error), "\udc80": "key", "seconds": 0.5}
        logging.getLogger(logger).warning("reconcile failed", extra=extra, exc_info=True)

    told.seek(0)
    text = told.read()
    assert "reconcile failed" in text or "failed" in text
    assert text.replace("\\\\", "\\").count("file \\udcff") >= 2
    assert capsys.readouterr().err == ""
    if form is JSON:
        (line,) = map(json.loads, text.splitlines())
        assert (line["seconds"], line["\\udc80"]) == (0.5, "key")


# Clears the screen, sets the title, overwrites the line, a C1 control, a new line, the direction of writing.
STEERS = "a\x1b[2J\x1b]0;title\x07b\rOK\x9b1mc\x7f\n12:00:00 info\u2028\u202e"


@pytest.mark.parametrize("form", [JSON, console])
@pytest.mark.parametrize("logger", ["test.logging", WORKER])
def test_no_text_steers_the_terminal_or_begins_a_line(form: Form | None, logger: str) -> None:
    """Regression: a text without a blank, the name of an object and a traceback were written as they were."""
    told = io.StringIO()
    configure(form, stream=told)
    logging.getLogger(logger).warning("reconcile failed", extra={"error": STEERS, "object": STEERS, STEERS: "x"})
    logging.getLogger(logger).warning(STEERS, extra={"seconds": 0.5})
    first, second, *more = told.getvalue().split("\n")[:-1]
    assert (first + second).isprintable()
    assert not more
    if form is JSON:
        assert json.loads(first)["error"] == json.loads(first)["object"] == json.loads(second)["message"] == STEERS


@pytest.mark.parametrize("form", [JSON, console])
def test_no_error_steers_the_terminal(form: Form | None) -> None:
    told = io.StringIO()
    configure(form, stream=told)
    try:
        raise RuntimeError(STEERS)
    except RuntimeError:
        log.exception("it failed")
    assert told.getvalue().replace("\n", "").isprintable()
    assert "a\\u001b[2J" in told.getvalue()


@pytest.mark.parametrize("form", [JSON, console])
@pytest.mark.parametrize("logger", ["test.logging", WORKER])
def test_a_line_is_bounded_and_says_how_much_was_left_out(form: Form | None, logger: str) -> None:
    """Regression: an error with a text of 5 MB made lines of 10 MB, at each try."""
    told = io.StringIO()
    configure(form, stream=told)
    long = "begin " + "x" * 5_000_000 + " end"
    try:
        raise RuntimeError(long)
    except RuntimeError:
        logging.getLogger(logger).warning("reconcile failed", extra={"error": long, "seconds": 0.5}, exc_info=True)

    text = told.getvalue()
    assert len(text) < 3 * ours.LONGEST
    assert text.count(f"... ({len(long) - ours.LONGEST} characters left out) ...") == 1
    assert text.count("characters left out") == 2
    assert "begin xxx" in text
    assert text.count("xxx end") == 2


def test_many_short_texts_are_logged_whole(lines: Any) -> None:
    log.info("many", extra={f"key{number}": "x" * 1000 for number in range(100)} | {"count": 7})
    (line,) = lines()
    assert sum(value == "x" * 1000 for value in line.values()) == 100
    assert line["count"] == 7


def test_the_console_format_is_found_where_the_developer_tools_are_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert of_tools("console") is None, "here the tools are sources beside the runtime"
    runtime = Path(ours.__file__).parents[2]
    name, data = pack(contents(runtime / "bonny_dev"), contents(runtime / "bonny"))
    (tmp_path / name).write_bytes(data)
    with zipfile.ZipFile(tmp_path / name) as wheel:
        wheel.extractall(tmp_path, [each for each in wheel.namelist() if ".dist-info/" in each])
    monkeypatch.syspath_prepend(str(tmp_path))
    assert of_tools("console") is console
