"""Extras: the table fits the folders, the core names none of them, and an absent one is named in one sentence."""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from operator import attrgetter
from pathlib import Path
from typing import TypeAlias

import pytest

from bonny import Operator, telemetry
from bonny.carried import PACKAGE, MissingExtra, is_present, listed, load, missing
from bonny.extras import Extra, Part, present
from bonny_dev.wheel import listed_extras, sources

Without: TypeAlias = Callable[..., Path]
FOLDERS = sorted({folder for extra in listed().values() for folder in extra.folders})
KUBECONFIG = {
    "current-context": "c",
    "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
    "clusters": [{"name": "k", "cluster": {"server": "http://127.0.0.1:1"}}],
    "users": [{"name": "u", "user": {}}],
}


# --- the table --------------------------------------------------------------------------------------------------------


def plugged() -> dict[str, Extra]:
    """The extras that have a module `extra`, by name."""
    found = {}
    for name, extra in listed().items():
        if extra.folders and (PACKAGE / extra.folders[0] / "extra.py").is_file():
            found[name] = importlib.import_module(f"bonny.{extra.folders[0]}.extra").EXTRA
    return found


def test_each_folder_of_the_table_is_a_package_and_is_present() -> None:
    assert [
        *(
            "compat",
            "console",
            "cron",
            "filters",
            "metrics_auth",
            "namespaces",
            "otel",
            "policies",
            "proxies",
            "scheduler",
        ),
        *("sessions", "sharding", "stages", "tls", "webhooks"),
    ] == FOLDERS
    assert [folder for folder in FOLDERS if not (PACKAGE / folder / "__init__.py").is_file()] == []
    assert [name for name in listed() if not is_present(name)] == []


def test_each_module_extra_belongs_to_an_extra_of_the_table() -> None:
    there = sorted(path.parent.name for path in PACKAGE.rglob("extra.py"))
    assert there == sorted(listed()[name].folders[0] for name in plugged())
    # Others are loaded for an operator with a class that they serve.
    assert present() == {
        name: extra for name, extra in plugged().items() if listed()[name].option or listed()[name].variables
    }
    assert all(isinstance(extra, Extra) for extra in plugged().values())


def test_the_variables_of_the_table_are_those_that_the_extra_reads() -> None:
    for name, extra in plugged().items():
        # A variable that only changes how traces are made asks for none, nor does one that only limits a proxy.
        changing = {"OTEL_SERVICE_NAME", "OTEL_SDK_DISABLED", "NO_PROXY", "no_proxy"}
        read = set(extra.variables) or set(extra.honoured) - changing
        assert set(listed()[name].variables) == read, name
        assert (extra.settings is None) == (not extra.variables), name
        if extra.settings is not None:
            assert is_dataclass(extra.settings)
            assert {variable.field for variable in extra.variables.values()} == {
                field.name for field in fields(extra.settings)
            }
    assert [name for name, extra in listed().items() if name not in plugged() and extra.variables] == []


def test_the_variables_of_opentelemetry_in_the_table_are_those_that_ask_for_traces() -> None:
    from bonny.otel.provider import ASKING  # noqa: PLC0415  as the extra does

    assert sorted(listed()["otel"].variables) == sorted(ASKING)


def test_each_option_of_the_table_is_an_attribute_of_an_operator_and_false_by_default() -> None:
    plain = Operator(name="op", group="example.com")
    options = {name: extra.option for name, extra in listed().items() if extra.option}
    assert options == {
        "webhooks": "converted",
        "metrics-auth": "deploy.secure_metrics",
        "otel": "tracing",
        "sharding": "sharding",
        "lifespan": "opened",
    }
    assert [name for name, option in options.items() if attrgetter(option)(plain)] == []


def test_each_class_that_an_extra_serves_names_its_extra() -> None:
    """The tools and `discover` ask the class."""
    for name in ("scheduler", "webhooks"):
        load(name, what="this test")
    found = {part.extra: part for part in Part.__subclasses__() if part.__module__.startswith("bonny.")}
    assert sorted(found) == ["scheduler", "webhooks"]
    for name, part in found.items():
        assert part.__module__.split(".")[1] == listed()[name].folders[0]


def test_packages_of_the_table_are_requirements_with_bounds() -> None:
    table = listed_extras(sources())
    for name, extra in listed().items():
        packages = table[name].get("packages", [])
        assert [each for each in packages if not re.match(r"[\w-]+>=[\d.]+,<\d+(; .+)?$", each)] == []
        assert extra.folders or packages


# --- the core ---------------------------------------------------------------------------------------------------------


ALLOWED = {
    # A resource of Kubernetes has the name of an extra.
    "client/request.py": ("bonny.namespaces",),
    # Cron expressions are an option of the core; the extra brings the ticks.
    "servers/ticks.py": ("bonny.cron",),
    # A format of the log has the name of an extra.
    "run/config.py": ("bonny.console",),
    # So has a part of the developer tools, the log for people.
    "main.py": ("bonny.console",),
    # The console knows the logger of a scheduler's decisions, and their field `scheduler`.
    "telemetry/logging.py": ("bonny.scheduler.server", "bonny.scheduler", "bonny.console"),
}


def core() -> Iterator[Path]:
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.relative_to(PACKAGE).parts[0] not in FOLDERS:
            yield path


def named(tree: ast.Module, package: tuple[str, ...]) -> Iterator[str]:
    """The places in `tree`, a module of `package`, that name a package of an extra."""
    # Docstrings may describe webhooks; names of telemetry events are no modules.
    texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                paths = [alias.name for alias in node.names]
            case ast.ImportFrom():
                base = [*package[: len(package) - node.level + 1]] if node.level else []
                base += node.module.split(".") if node.module else []
                paths = [".".join([*base, alias.name]) for alias in node.names]
            case ast.Attribute():
                # `cron` is an option of reconcilers and tasks, `sharding` of operators; servers have namespaces.
                paths = [f"bonny.{node.attr}"] if node.attr not in {"cron", "namespaces", "sharding"} else []
            case ast.Constant(value=str(text)) if id(node) not in texts and text not in telemetry.EVENTS:
                paths = [f"bonny.{text.removeprefix('bonny').lstrip('.')}"] if re.fullmatch(r"[\w.]+", text) else []
            case _:
                continue
        for path in paths:
            first, _, rest = path.partition(".")
            if first == "bonny" and rest.partition(".")[0] in FOLDERS:
                yield f"{node.lineno}: {path}"


def test_no_module_of_the_core_names_a_package_of_an_extra() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{place}"
        for path in core()
        for place in named(ast.parse(path.read_text("utf-8")), ("bonny", *path.parent.relative_to(PACKAGE).parts))
        if place.partition(": ")[2] not in ALLOWED.get(path.relative_to(PACKAGE).as_posix(), ())
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "import bonny.tls.secret",
        "from bonny import webhooks",
        "from ..tls import secret",
        "from .. import scheduler",
        "from ..otel.spans import OtelSpans",
        "process.webhooks = None",
        "import_module('bonny.metrics_auth.server')",
        "import_module('.scheduler.server', 'bonny')",
        "load('webhooks', what='it')",
    ],
)
def test_a_module_of_the_core_that_names_one_is_noticed(line: str) -> None:
    assert [*named(ast.parse(line), ("bonny", "run"))]


# --- an absent extra --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Without:
    """A function that returns a copy of the runtime without some folders; each is made once."""
    made: dict[tuple[str, ...], Path] = {}

    def copy(*folders: str) -> Path:
        if folders not in made:
            made[folders] = tmp_path_factory.mktemp("runtime")
            absent = {str(PACKAGE / folder) for folder in folders}

            def ignored(folder: str, names: list[str]) -> list[str]:
                return [name for name in names if str(Path(folder) / name) in absent]

            shutil.copytree(PACKAGE, made[folders] / "bonny", ignore=ignored)
        return made[folders]

    return copy


def run(runtime: Path, folder: Path, code: str, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m theirs` with `words`; its module `operators` has this code."""
    (folder / "operators.py").write_text(code, "utf-8")
    (folder / "theirs.py").write_text("import sys\nfrom bonny import main\nsys.exit(main.run('operators'))\n", "utf-8")
    (folder / "kubeconfig").write_text(json.dumps(KUBECONFIG), "utf-8")
    clean = {name: text for name, text in os.environ.items() if not name.startswith(("BONNY_", "OTEL_"))}
    paths = {"PYTHONPATH": f"{runtime}{os.pathsep}{folder}", "KUBECONFIG": str(folder / "kubeconfig")}
    paths["PYTHONDONTWRITEBYTECODE"] = "1"  # the next code of the same size and second would not be read
    return subprocess.run(
        [sys.executable, "-m", "theirs", *words],
        env={**clean, **paths, "BONNY_HTTP_PORT": "0", **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


PLAIN = "from bonny import Operator\noperator = Operator(name='op', group='example.com')\n"
CRON = """
from bonny import Operator, PeriodicTask
task = PeriodicTask("nightly", print, cron="0 3 * * *")
operator = Operator(name="op", group="example.com", controllers=[task])
"""
SECURE = """
from bonny import Deploy, Operator
operator = Operator(name="op", group="example.com", deploy=Deploy(secure_metrics=True))
"""
TRACED = "from bonny import Operator\noperator = Operator(name='op', group='example.com', tracing=object())\n"
CONVERTED = """
from bonny import Operator
from bonny.api import Spec, Version
class OldSpec(Spec):
    size: int = 1
class NewSpec(Spec):
    text: str = ""
class Old(Version):
    kind, version = "Widget", "v1"
    spec: OldSpec = OldSpec()
class New(Version):
    kind, version, hub, storage = "Widget", "v2", True, True
    spec: NewSpec = NewSpec()
operator = Operator(name="op", group="example.com", crds=[Old, New])
"""
SENTENCE = "{what} needs the extra {extra}, which is not in vendor/: run `invoke extras --add {extra}`\n"


@pytest.mark.parametrize(
    ("folders", "code", "what", "extra"),
    [
        (("scheduler",), "from bonny.scheduler import Scheduler\n", "`import bonny.scheduler`", "scheduler"),
        (("scheduler",), "from bonny import scheduler\n", "`import bonny.scheduler`", "scheduler"),
        (("scheduler",), "import bonny.scheduler.nodes\n", "`import bonny.scheduler`", "scheduler"),
        (("filters",), "from bonny.filters import fits\n", "`import bonny.filters`", "filters"),
        (("filters",), "from bonny import filters\n", "`import bonny.filters`", "filters"),
        (("webhooks",), "from bonny.webhooks import Admission\n", "`import bonny.webhooks`", "webhooks"),
        (("webhooks", "metrics_auth", "tls"), "import bonny.tls.secret\n", "`import bonny.tls`", "webhooks"),
        (("cron",), CRON, "the cron expression of task nightly", "cron"),
        (("metrics_auth",), SECURE, "Deploy(secure_metrics=True)", "metrics-auth"),
        (("otel",), TRACED, "Operator(tracing=...)", "otel"),
        (("webhooks",), CONVERTED, "conversion between versions of a kind whose fields differ", "webhooks"),
    ],
)
def test_an_operator_that_needs_an_absent_extra_ends_with_one_sentence(
    without: Without, tmp_path: Path, *, folders: tuple[str, ...], code: str, what: str, extra: str
) -> None:
    done = run(without(*folders), tmp_path, code)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", SENTENCE.format(what=what, extra=extra))


@pytest.mark.parametrize("words", [(), ("config",)])
@pytest.mark.parametrize(
    ("folder", "variable", "extra"),
    [
        ("webhooks", "BONNY_WEBHOOK_PORT", "webhooks"),
        ("webhooks", "BONNY_WEBHOOK_CERTIFICATE", "webhooks"),
        ("metrics_auth", "BONNY_SECURE_METRICS_PORT", "metrics-auth"),
    ],
)
def test_a_variable_of_an_absent_extra_ends_with_one_sentence(
    without: Without, tmp_path: Path, *, words: tuple[str, ...], folder: str, variable: str, extra: str
) -> None:
    done = run(without(folder), tmp_path, PLAIN, *words, **{variable: "1"})
    assert (done.returncode, done.stdout, done.stderr) == (2, "", SENTENCE.format(what=variable, extra=extra))


def test_the_help_lists_the_variables_of_the_extras_that_are_present(without: Without, tmp_path: Path) -> None:
    done = run(without("webhooks"), tmp_path, PLAIN, "help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "BONNY_SECURE_METRICS_PORT" in done.stdout
    assert "BONNY_WEBHOOK_PORT" not in done.stdout


# It ends as soon as it has started.
STOPPED = """
import logging, os, signal
from bonny import Operator
operator = Operator(name="op", group="example.com")
class Ends(logging.Filter):
    def filter(self, record):
        if record.msg == "started":
            os.kill(os.getpid(), signal.SIGTERM)
        return True
logging.getLogger("bonny.run.process").addFilter(Ends())
"""


def test_a_variable_of_opentelemetry_without_the_extra_is_one_warning(without: Without, tmp_path: Path) -> None:
    """Other containers and libraries may read it: the operator starts."""
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_SERVICE_NAME": "op"}
    done = run(without("otel"), tmp_path, STOPPED, **environ, BONNY_LOG_FORMAT="json")
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in done.stderr.splitlines()]
    ours = [each for each in records if each["message"] != "the event loop is blocked"]  # of a busy machine
    warnings = [(each["message"], each["because"]) for each in ours if each["level"] == "warning"]
    because = SENTENCE.format(what="OTEL_EXPORTER_OTLP_ENDPOINT", extra="otel").strip()
    assert warnings == [("an environment variable has no effect", because)]


def test_an_operator_without_any_extra_runs(without: Without, tmp_path: Path) -> None:
    done = run(without(*FOLDERS), tmp_path, STOPPED, BONNY_LOG_FORMAT="json")
    assert done.returncode == 0, done.stderr
    messages = [json.loads(line)["message"] for line in done.stderr.splitlines()]
    assert {"started", "stopped"} <= set(messages)


# Modules of the developers' tools that belong to an extra; the others load them where an operator uses it.
OF_EXTRAS = {
    *("bonny_dev.manifest.certificates", "bonny_dev.manifest.serving", "bonny_dev.manifest.webhooks"),
    *("bonny_dev.manifest.secure_metrics", "bonny_dev.tasks.doctor_webhooks", "bonny_dev.local_webhooks"),
    "bonny_dev.tasks.doctor_sharding",
}
IMPORT_ALL = """
import importlib, pkgutil, bonny_dev
for module in pkgutil.walk_packages(bonny_dev.__path__, "bonny_dev."):
    try:
        importlib.import_module(module.name)
    except ImportError as error:
        print(module.name)
"""


def test_the_tools_work_without_extras(without: Without, tmp_path: Path) -> None:
    """Regression: `invoke install`, `uninstall` and `doctor` ended with a traceback without the extra `webhooks`."""
    runtime = without(*FOLDERS)
    if not (runtime / "bonny_dev").exists():
        (runtime / "bonny_dev").symlink_to(PACKAGE.parent / "bonny_dev")
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL],
        env={**os.environ, "PYTHONPATH": str(runtime)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert set(done.stdout.split()) == OF_EXTRAS


def test_other_errors_of_imports_are_raised_with_their_traceback(without: Without, tmp_path: Path) -> None:
    lines = {
        "import no_such_package": "ModuleNotFoundError: No module named 'no_such_package'",
        "import bonny.no_such_module": "ModuleNotFoundError: No module named 'bonny.no_such_module'",
        "from bonny import Contoller": "ImportError: cannot import name 'Contoller' from 'bonny'",
    }
    for line, error in lines.items():
        done = run(without("scheduler"), tmp_path, f"{line}\n")
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1].startswith(error)


def test_an_operator_that_cannot_be_declared_ends_with_one_sentence(without: Without, tmp_path: Path) -> None:
    done = run(without("scheduler"), tmp_path, PLAIN.replace("'op'", "'Not a name'"))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("'Not a name' is not a valid operator name")


def test_an_import_of_an_extra_that_is_present_is_no_missing_extra() -> None:
    assert missing(ModuleNotFoundError("no", name="bonny.scheduler.no_such_module")) is None
    assert missing(ImportError("no")) is None


def test_an_absent_extra_is_an_error_with_its_name_and_what_needs_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("bonny.carried.PACKAGE", tmp_path)
    with pytest.raises(MissingExtra) as raised:
        load("cron", what="it")
    assert (raised.value.what, raised.value.extra) == ("it", "cron")
