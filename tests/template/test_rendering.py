"""Rendering: what the template becomes is complete, valid and the same each time."""

from __future__ import annotations

import ast
import json
import re
import shutil
import socket
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from cookiecutter.environment import StrictEnvironment

from bonny_dev.wheel import BASE, PATTERN, VERSION, base_of, selected, version_of
from tests.support.baking import TEMPLATE, bake, rendered_files
from tests.template.conftest import ANSWER_SETS, project_of
from tests.template.test_answers import ACCEPTED, REFUSED, REFUSED_BY_COOKIECUTTER

FOLDER = TEMPLATE / "<<cookiecutter.operator_slug>>"
CONTEXT = json.loads((TEMPLATE / "cookiecutter.json").read_text(encoding="utf-8"))
RUNTIME = TEMPLATE / "runtime"
PACKAGES = ("bonny", "bonny_dev")
# A name that Windows refuses: a reserved character, a final dot or space, or a device's name.
ILLEGAL_ON_WINDOWS = re.compile(r'[<>:"|?*\\]|[. ]$|^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)', re.IGNORECASE)


def template_files() -> list[Path]:
    """Every file that cookiecutter renders, hooks included."""
    files = [path for path in sorted(FOLDER.rglob("*")) if path.is_file() and FOLDER / "vendor" not in path.parents]
    return [*files, *sorted((TEMPLATE / "hooks").glob("*.py"))]


@pytest.mark.parametrize("path", template_files(), ids=lambda path: str(path.relative_to(TEMPLATE)))
def test_every_template_file_parses_with_the_templates_own_delimiters(path: Path) -> None:
    """cookiecutter would leave a half-written project behind."""
    environment = StrictEnvironment(context={"cookiecutter": CONTEXT}, **CONTEXT["_jinja2_env_vars"])

    environment.parse(path.read_text(encoding="utf-8"))
    environment.parse(str(path.relative_to(TEMPLATE)))


def test_all_six_delimiters_are_set_so_that_shell_and_workflow_syntax_passes_through() -> None:
    delimiters = {name: text for name, text in CONTEXT["_jinja2_env_vars"].items() if name.endswith("_string")}

    assert sorted(delimiters.values()) == ["#>", "%>", "<#", "<%", "<<", ">>"]


@pytest.mark.parametrize("hook", sorted((TEMPLATE / "hooks").glob("*.py")), ids=lambda path: path.name)
def test_hooks_are_valid_python_before_they_are_rendered(hook: Path) -> None:
    ast.parse(hook.read_text(encoding="utf-8"))


# What each option writes; whoever chose something else gets none of it, not even an empty folder.
OPTIONAL_FILES = {
    ("ci", "github"): {
        ".github/workflows/ci.yml",
        ".github/workflows/nightly.yml",
        ".github/workflows/release.yml",
        ".github/dependabot.yml",
    },
    ("ci", "gitlab"): {".gitlab-ci.yml", "renovate.json"},
    ("code_owners", "given"): {"CODEOWNERS"},
    ("security_contact", "given"): {"SECURITY.md"},
    ("devcontainer", "yes"): {".devcontainer/devcontainer.json"},
    ("licence", "Apache-2.0"): {"LICENSE"},
    ("licence", "MIT"): {"LICENSE"},
}
DEFAULTS = {"ci": "github", "licence": "Apache-2.0", "devcontainer": "no"}


@pytest.mark.parametrize("name", sorted(ANSWER_SETS))
def test_files_and_folders_come_and_go_by_answer(
    name: str, baked_sets: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    project = project_of(name, baked_sets, tmp_path_factory)
    answers = {**DEFAULTS, **ANSWER_SETS[name]}
    chosen = {*answers.items(), *((option, "given") for option in answers if answers[option])}
    wanted = set().union(*(files for choice, files in OPTIONAL_FILES.items() if choice in chosen))
    known = set().union(*OPTIONAL_FILES.values())

    written = {path.relative_to(project).as_posix() for path in rendered_files(project)}
    assert written & known == wanted
    assert [path for path in project.rglob("*") if path.is_dir() and not any(path.iterdir())] == []


def test_what_is_rendered_can_be_read_in_an_hour(rendered: Path) -> None:
    files = rendered_files(rendered)

    assert len(files) <= 40
    assert len((rendered / "AGENTS.md").read_text(encoding="utf-8").splitlines()) < 60
    assert sum(len(path.read_bytes().splitlines()) for path in files if path.name != "LICENSE") < 800


def test_the_page_that_compares_counts_right(
    baked_sets: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    page = (TEMPLATE / "docs/comparison.md").read_text(encoding="utf-8")
    default, fullest = (project_of(name, baked_sets, tmp_path_factory) for name in ("default", "fullest"))
    entry = default / "src/widgets_operator"

    def lines(path: Path) -> int:
        return len(path.read_text(encoding="utf-8").splitlines())

    assert f"| {len(rendered_files(default))}; {len(rendered_files(fullest))} with all options |" in page
    assert f"{lines(entry / 'operator.py')} (`operator.py`) and {lines(entry / '__main__.py')} (`__main__.py`)" in page
    assert f"AGENTS.md, {lines(default / 'AGENTS.md')} lines" in page
    assert f"{len(REFUSED) + len(REFUSED_BY_COOKIECUTTER)} refused and {len(ACCEPTED)} accepted, by table" in page


def test_no_file_speaks_of_what_was_not_chosen(rendered: Path, request: pytest.FixtureRequest) -> None:
    answers = {**DEFAULTS, **ANSWER_SETS[request.node.callspec.params["rendered"]]}
    text = "".join(path.read_text(encoding="utf-8") for path in rendered_files(rendered) if path.name != "LICENSE")
    words = {"github": ("GitHub", ".github", "Dependabot", "Actions"), "gitlab": ("GitLab", "gitlab", "Renovate")}

    for forge, theirs in words.items():
        # The name of the forge stands in links of others and in prose about the API; theirs are the files and products.
        assert answers["ci"] == forge or [word for word in theirs if word in text] == []
    assert answers.get("security_contact") or "SECURITY.md" not in text
    assert answers["licence"] != "none" or "LICENSE" not in text.replace("vendor/bonny/LICENSE", "").replace(
        "its LICENSE", ""
    )


def test_nothing_of_this_machine_is_in_a_rendered_file(rendered: Path) -> None:
    """No path, no host, no address of a package index."""
    foreign = [
        str(TEMPLATE),
        str(rendered.parent),
        str(Path.home()),
        f"//{socket.gethostname()}",
        sys.prefix,
        "pypi",
        "index-url",
    ]

    for path in rendered.rglob("*"):
        if path.is_file():
            text = path.read_bytes().decode(errors="replace")
            assert [word for word in foreign if word in text] == [], path


def test_no_rendered_file_needs_an_executable_bit_and_none_has_one(rendered: Path) -> None:
    """Archives lose it (docs/decisions/0002)."""
    assert [path for path in rendered.rglob("*") if path.is_file() and path.stat().st_mode & 0o111] == []


def test_no_delimiter_is_left_in_a_rendered_file(rendered: Path) -> None:
    marks = re.compile(r"<<|>>|<%|%>|<#|#>|cookiecutter\.")

    assert [str(path) for path in rendered_files(rendered) if marks.search(path.read_text(encoding="utf-8"))] == []


def test_every_rendered_name_is_legal_on_windows(rendered: Path) -> None:
    names = {path.name for path in rendered.rglob("*") if ".venv" not in path.parts}

    assert [name for name in sorted(names) if ILLEGAL_ON_WINDOWS.search(name)] == []


def test_rendered_files_end_lines_with_a_line_feed_and_hold_no_work_for_later(rendered: Path) -> None:
    for path in rendered_files(rendered):
        data = path.read_bytes()
        assert b"\r" not in data, path
        assert not data or data.endswith(b"\n"), path
        assert not re.search(rb"TODO|FIXME|XXX", data), path


def test_rendered_python_toml_and_yaml_parse(rendered: Path) -> None:
    for path in rendered_files(rendered):
        text = path.read_text(encoding="utf-8")
        match path.suffix:
            case ".py":
                ast.parse(text)
            case ".toml":
                tomllib.loads(text)
            case ".yml" | ".yaml":
                assert yaml.safe_load(text)
            case _:
                pass


@pytest.mark.parametrize("name", sorted(ANSWER_SETS))
def test_answers_arrive_unchanged_in_the_project_table(
    name: str, baked_sets: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    answers = ANSWER_SETS[name]
    project = project_of(name, baked_sets, tmp_path_factory)
    table = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))

    for answer, value in (
        ("operator_slug", table["project"]["name"]),
        ("description", table["project"]["description"]),
        ("author", table["project"]["authors"][0]["name"]),
        ("image_repository", table["tool"]["bonny"]["image"]),
    ):
        assert answer not in answers or value == answers[answer]


def test_the_licence_file_comes_or_goes_by_answer(tmp_path: Path) -> None:
    first_lines = {}
    for licence in ("Apache-2.0", "MIT", "none"):
        path = bake(tmp_path / licence, {"licence": licence}).project / "LICENSE"
        first_lines[licence] = path.read_text(encoding="utf-8").split()[0] if path.exists() else None

    assert first_lines == {"Apache-2.0": "Apache", "MIT": "MIT", "none": None}


def test_both_packages_are_symbolic_links_in_the_template_and_a_copy_and_a_wheel_in_the_project(tmp_path: Path) -> None:
    project = bake(tmp_path / "bake").project

    assert [path.name for path in sorted((FOLDER / "vendor").iterdir())] == list(PACKAGES)
    for package in PACKAGES:
        assert (FOLDER / "vendor" / package).readlink() == Path("../../runtime") / package
        assert f"vendor/{package}" in CONTEXT["_copy_without_render"]
    assert not (project / "vendor/bonny").is_symlink()
    assert runtime_in(project) == contents(RUNTIME)


def test_the_runtime_records_the_version_of_its_wheel(rendered: Path) -> None:
    (wheel,) = (rendered / "vendor").glob(PATTERN)

    assert (rendered / "vendor/bonny" / VERSION).read_text("utf-8") == f"{version_of(wheel.name)}\n"


def test_cruft_finds_the_folder_that_it_looks_for() -> None:
    """cruft takes a template only if a folder's name begins with the default delimiters; it renders the other one."""
    decoy = TEMPLATE / "{{cookiecutter.cruft}}"

    assert [path.name for path in decoy.iterdir()] == [".gitkeep"]


@pytest.mark.parametrize("package", PACKAGES)
def test_git_keeps_the_link_as_a_link(package: str) -> None:
    staged = subprocess.run(
        ["git", "ls-files", "--stage", "--", f"{FOLDER.name}/vendor/{package}"],
        cwd=TEMPLATE,
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    if not staged:
        pytest.skip("the template is not under git here")
    assert staged.startswith("120000 ")


def test_rendering_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = (bake(tmp_path / name).project for name in ("first", "second"))

    assert contents(first) == contents(second)


def test_caches_of_the_runtime_do_not_reach_a_project(tmp_path: Path) -> None:
    copy = copied_template(tmp_path)
    for package in PACKAGES:
        cache = copy / "runtime" / package / "__pycache__"
        cache.mkdir(exist_ok=True)
        (cache / "x.pyc").write_bytes(b"x")

    assert list(bake(tmp_path / "bake", template=copy).project.rglob("__pycache__")) == []


@pytest.mark.parametrize("lost", [PACKAGES, PACKAGES[1:]])
def test_a_template_that_lost_its_links_is_repaired_from_its_own_runtime(tmp_path: Path, lost: tuple[str, ...]) -> None:
    """As a zip archive, or a clone with core.symlinks=false, leaves it."""
    copy = copied_template(tmp_path)
    for package in lost:
        link = copy / FOLDER.name / "vendor" / package
        link.unlink()
        link.write_text(f"../../runtime/{package}", encoding="utf-8")

    baked = bake(tmp_path / "bake", template=copy)

    assert baked.code == 0, baked.said
    assert runtime_in(baked.project) == contents(RUNTIME)


def test_the_template_renders_from_a_zip_archive(tmp_path: Path) -> None:
    copy = copied_template(tmp_path)
    archive = tmp_path / "template.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        for path in (copy, *sorted(copy.rglob("*"))):
            name = str(path.relative_to(tmp_path))
            if path.is_symlink():
                entry = zipfile.ZipInfo(name)
                entry.external_attr = 0o120777 << 16
                zipped.writestr(entry, str(path.readlink()))
            else:
                zipped.write(path, name)

    baked = bake(tmp_path / "bake", template=archive)

    assert baked.code == 0, baked.said
    assert runtime_in(baked.project) == contents(RUNTIME)


def test_rendered_dependencies_are_those_that_the_runtime_is_tested_with(pristine: Path) -> None:
    groups = tomllib.loads((TEMPLATE / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    table = tomllib.loads((pristine / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    ours = {text for text in groups["dev"] if isinstance(text, str)} | {*groups["runtime"], *groups["tasks"]}

    assert sorted(table["dependencies"]) == sorted(groups["runtime"])
    assert {text for text in table["optional-dependencies"]["dev"] if not text.startswith("bonny-dev @ ")} <= ours
    listed = json.loads((RUNTIME / "bonny" / "extras.json").read_text(encoding="utf-8"))
    assert table["optional-dependencies"]["fast"] == listed["fast"]["packages"]
    packages = {text for extra in listed.values() for text in extra.get("packages", ())}
    traces = {text for text in packages if text.startswith("opentelemetry-")}
    assert packages - traces <= ours
    versions = {text.partition(">=")[2] for text in traces}
    assert {f"opentelemetry-sdk>={version}" for version in versions} <= ours, "they are released together"


def test_the_task_list_needs_nothing_but_invoke(pristine: Path) -> None:
    """Guards the half second that `invoke --list` may take, by what is imported and not by a clock."""
    heavy = {"aiohttp", "jinja2", "kubernetes", "msgspec", "pydantic", "pytest"}
    code = f"import runpy, sys; runpy.run_path('tasks.py'); print(sorted({heavy} & set(sys.modules)))"

    done = subprocess.run([sys.executable, "-c", code], cwd=pristine, capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == ("[]\n", "")


def runtime_in(project: Path) -> dict[str, bytes]:
    """The runtime with all extras, of which some are vendored, and the developer tools, both from their wheel, without
    what is made on the way."""
    (wheel,) = (project / "vendor").glob(PATTERN)
    assert sorted(path.name for path in (project / "vendor").iterdir()) == ["bonny", wheel.name]
    base, vendored = base_of(wheel), contents(project / "vendor/bonny")
    del vendored[VERSION]
    listed = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))["tool"]["bonny"]["extras"]
    assert vendored == selected(base, listed), "the base of a merge"
    assert vendored.keys() < base.keys()
    runtime = {f"bonny/{name}": data for name, data in base.items()}
    with zipfile.ZipFile(wheel) as archive:
        tools = {name: archive.read(name) for name in archive.namelist() if name.startswith("bonny_dev/")}
        stubs = [name for name in archive.namelist() if name.startswith("bonny-stubs/types/")]
        types = {name.replace("bonny-stubs", "bonny"): archive.read(name) for name in stubs}
    del tools[f"bonny_dev/{BASE}"], types["bonny/types/__init__.pyi"]
    assert {name for name in runtime if "/types/" in name} == {"bonny/types/__init__.py"}
    # Each module of types has a file that stands for it here, where nothing is packed.
    types |= {name.removesuffix("i"): f'"""See {Path(name).name}."""\n'.encode() for name in types}
    return {**runtime, **types, **tools}


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below `folder` by its relative path, without caches."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def copied_template(folder: Path) -> Path:
    """The parts of the template that cookiecutter needs, as a copy with its link."""
    copy = folder / "template"
    copy.mkdir()
    shutil.copy(TEMPLATE / "cookiecutter.json", copy)
    for name in (FOLDER.name, "hooks", "runtime"):
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(TEMPLATE / name, copy / name, symlinks=True, ignore=ignore)
    return copy
