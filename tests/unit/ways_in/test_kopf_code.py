"""Handlers of kopf, read without being imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from bonny.errors import UsageError
from bonny_dev.tasks.port_kopf import listing
from bonny_dev.ways_in.kopf_code import COUNTERPARTS, OPTIONS, PARAMETERS, USES, Handler, read_kopf


def read(folder: Path, text: str) -> tuple[Handler, ...]:
    path = folder / "handlers.py"
    path.write_text(text, "utf-8")
    return read_kopf(path).handlers


@pytest.mark.parametrize(
    ("selector", "named"),
    [
        ("'websites'", ("", "", "websites")),
        ("'websites.example.com'", ("example.com", "", "websites")),
        ("'websites.v1.example.com'", ("example.com", "v1", "websites")),
        ("'websites.v1beta1.example.com'", ("example.com", "v1beta1", "websites")),
        ("'example.com/v1', 'websites'", ("example.com", "v1", "websites")),
        ("'v1', 'pods'", ("", "v1", "pods")),
        ("'example.com', 'websites'", ("example.com", "", "websites")),
        ("'example.com', 'v1', 'websites'", ("example.com", "v1", "websites")),
        ("group='example.com', version='v1', plural='websites'", ("example.com", "v1", "websites")),
        ("kind='Website'", ("", "", "Website")),
        ("kopf.EVERYTHING", ("", "", "kopf.EVERYTHING")),
        ("PLURAL", ("", "", "PLURAL")),
    ],
)
def test_a_kind_is_found_by_the_rules_of_kopf(selector: str, named: tuple[str, str, str], tmp_path: Path) -> None:
    (handler,) = read(tmp_path, f"import kopf\n@kopf.on.create({selector})\ndef create(**_): ...\n")

    assert (handler.group, handler.version, handler.resource) == named


@pytest.mark.parametrize(
    ("imported", "decorator"),
    [
        ("import kopf", "kopf.on.delete"),
        ("import kopf as k", "k.on.delete"),
        ("from kopf import on", "on.delete"),
        ("from kopf import on as events", "events.delete"),
        ("from kopf.on import delete", "delete"),
    ],
)
def test_kopf_may_be_imported_in_any_way(imported: str, decorator: str, tmp_path: Path) -> None:
    (handler,) = read(tmp_path, f"{imported}\n@{decorator}('websites', optional=True)\nasync def gone(**_): ...\n")

    assert (handler.decorator, handler.function, handler.line) == ("on.delete", "gone", 2)
    assert (handler.method, handler.is_async) == ("finalize", True)


def test_a_decorator_of_another_package_is_none_of_kopf(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no handler of kopf"):
        read(tmp_path, "import flask\n@flask.on.create('x')\ndef create(): ...\n")


def test_a_handler_has_a_line_for_each_of_its_decorators(tmp_path: Path) -> None:
    text = "import kopf\n@kopf.on.resume('websites')\n@kopf.timer('websites', interval=60)\ndef look(**_): ...\n"

    resume, timer = read(tmp_path, text)

    assert (resume.decorator, timer.decorator, timer.interval) == ("on.resume", "timer", 60.0)


def test_the_list_names_each_use_and_its_counterpart_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "handlers.py"
    path.write_text(
        "import kopf\n"
        "@kopf.on.startup()\n"
        "def begin(memo, **_): ...\n"
        "def helper(patch): ...\n"
        "@kopf.on.create('websites')\n"
        "def create(patch, **_):\n"
        "    kopf.adopt({})\n"
        "    raise kopf.PermanentError('no')\n"
        "@kopf.on.strange('websites')\n"
        "def other(**_): ...\n",
        "utf-8",
    )

    assert [line.removeprefix(f"{path}:") for line in listing(read_kopf(path))] == [
        "2: on.startup, begin -> lifespan of the controller",
        "3: the parameter memo -> attributes of the controller",
        "5: on.create of websites, create -> reconcile",
        "6: the parameter patch -> axn.update_status; the object itself is not patched",
        "7: kopf.adopt -> owns and axn.register_descendant",
        "8: kopf.PermanentError -> Terminal",
        "9: on.strange of websites, other -> none: there is no equivalent",
    ]


def lines_of(folder: Path, text: str) -> list[str]:
    path = folder / "handlers.py"
    path.write_text(text, "utf-8")
    return [line.removeprefix(f"{path}:") for line in listing(read_kopf(path))]


def test_options_that_choose_when_a_handler_runs_are_listed_below_it(tmp_path: Path) -> None:
    """Regression: they were left out, so a filter or an interval was lost in the port."""
    text = (
        "import kopf\n"
        "@kopf.timer('websites', interval=60, idle=5, labels={'a': kopf.PRESENT}, id='t')\n"
        "def look(stopped, **_): ...\n"
        "@kopf.on.field('websites', field='spec.mode', old='open', retries=3)\n"
        "def mode(**_): ...\n"
        "@kopf.on.login(retries=3)\n"
        "def login(**_): ...\n"
    )

    assert [line.partition(" -> ")[0] for line in lines_of(tmp_path, text)] == [
        "2: timer of websites, look",
        "2: the option idle of timer",
        "2: the option labels of timer",
        "3: the parameter stopped",
        "4: on.field of websites, mode",
        "4: the option retries of on.field",
        "6: on.login, login",
    ]


def test_a_decorator_that_is_called_on_a_function_is_listed_like_one_above_it(tmp_path: Path) -> None:
    """Regression: `kopf.on.create(kind)(create)` was not seen."""
    text = "import kopf\ndef create(**_): ...\nfor kind in ('a', 'b'):\n    kopf.on.create(kind)(create)\n"

    assert lines_of(tmp_path, text) == ["4: on.create of kind, create -> reconcile"]


def test_the_patch_of_a_mutating_handler_is_that_of_a_review(tmp_path: Path) -> None:
    text = "import kopf\n@kopf.on.mutate('websites')\ndef width(patch, **_): ...\n"

    assert lines_of(tmp_path, text)[1] == "3: the parameter patch -> review.spec and review.resource, in default"


def test_every_option_parameter_and_name_of_kopf_that_is_listed_is_in_the_page() -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "port-a-kopf-operator.md").read_text("utf-8")
    rows = "".join(line for line in page.splitlines() if line.startswith("| "))
    for name in {*OPTIONS, *PARAMETERS, *USES} - {"register", "execute", "operator", "spawn_tasks"}:
        assert f"`{name}" in rows or f"{name}`" in rows or name.endswith(("Storage", "AutoServer")), name


def test_every_decorator_of_kopf_has_a_row_in_the_page_and_here() -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "port-a-kopf-operator.md").read_text("utf-8")

    for name in {*COUNTERPARTS} - {"subhandler", "on.subhandler"}:
        assert f"`{name}`" in page, name


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("def x(:\n", r"handlers\.py:1 is not valid Python \("),
        ("a = '\0'\n", "is not valid Python"),
        ("", "no handler"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_in_a_sentence(text: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=sentence):
        read(tmp_path, text)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^--code .*nothing\.py cannot be read \(No such file or directory\): "):
        read_kopf(tmp_path / "nothing.py")
