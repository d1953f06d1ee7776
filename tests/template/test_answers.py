"""Answers: strange ones arrive unchanged, impossible ones are refused in a sentence with nothing left on disk."""

from __future__ import annotations

import ast
import json
import re
import shlex
import sys
import tomllib
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest

from bonny.errors import UsageError
from bonny.naming import check_dns_label
from bonny_dev.naming import check_group, check_image
from tests.support.baking import bake

TEMPLATE = Path(__file__).parents[2]

REFUSED = [
    ("operator_slug", "a/b/c", "operator_slug 'a/b/c' cannot be"),
    ("operator_slug", "../outside", "operator_slug '../outside' cannot be"),
    ("operator_slug", "Widgets", "operator_slug 'Widgets' cannot be"),
    ("operator_slug", "widgets_operator", "cannot be the name of a namespace"),
    ("operator_slug", "1widget", "begin with a letter"),
    ("operator_slug", "widgets-", "cannot be the name of a namespace"),
    ("operator_slug", "a--b", "single '-'"),
    ("operator_slug", "a b", "cannot be the name of a namespace"),
    ("operator_slug", "w\nx", "U+000A"),
    ("operator_slug", 'x"; import os; os.abort() #', "cannot be the name of a namespace"),
    ("operator_slug", "a" * 51, "operator_slug has 51 characters: use at most 50"),
    ("operator_slug", "operator", "is taken by Python"),
    ("operator_slug", "class", "is taken by Python"),
    ("operator_slug", "json", "is taken by Python"),
    ("operator_slug", "bonny", "or by a package that the operator needs"),
    ("operator_slug", "pytest-asyncio", "or by a package that the operator needs"),
    ("operator_slug", "bonny-dev", "or by a package that the operator needs"),
    ("operator_slug", "uvicorn", "or by a package that the operator needs"),
    ("operator_slug", "pydantic-core", "or by a package that the operator needs"),
    ("operator_slug", "tests", "or by a package that the operator needs"),
    ("operator_slug", "con", "is taken by Python, by Windows"),
    ("operator_slug", "default", "one of Kubernetes' own namespaces"),
    ("operator_slug", "kube-system", "one of Kubernetes' own namespaces"),
    ("operator_name", " ", "operator_name is empty"),
    ("operator_name", "x" * 101, "operator_name has 101 characters"),
    ("description", "two\nlines", "description holds the character U+000A"),
    ("description", "tab\tbed", "U+0009"),
    ("description", "separated\u2028lines", "U+2028"),
    ("description", "next\x85line", "U+0085"),
    ("description", "escape\x1b[31m", "U+001B"),
    ("description", "turned\u202eround", "U+202E"),
    ("author", "", "author is empty"),
    ("author", "not\udc80text", "U+DC80"),
    ("api_group", "example", "is not a lower-case domain"),
    ("api_group", "Example.com", "is not a lower-case domain"),
    ("api_group", "-a.example.com", "is not a lower-case domain"),
    ("api_group", "a..b", "is not a lower-case domain"),
    ("api_group", f"{'a' * 64}.com", "is not a lower-case domain"),
    ("api_group", "apps.k8s.io", "is kept for Kubernetes itself"),
    ("api_group", "kubernetes.io", "is kept for Kubernetes itself"),
    ("image_repository", "Upper/Case", "is not a lower-case image name"),
    ("image_repository", "registry.example.com/x:1.0", "without tag"),
    ("image_repository", f"x@sha256:{'0' * 64}", "without tag and digest"),
    ("image_repository", "https://registry.example.com/x", "is not a lower-case image name"),
    ("image_repository", "x/", "is not a lower-case image name"),
    ("operator_slug", "/tmp/outside", "operator_slug '/tmp/outside' cannot be"),
    ("operator_slug", "lpt1", "is taken by Python, by Windows"),
    ("operator_slug", "con.txt", "cannot be the name of a namespace"),
    ("operator_slug", "~root", "cannot be the name of a namespace"),
    ("operator_slug", "-rf", "begin with a letter"),
    ("operator_slug", "{{ 7 * 7 }}", "cannot be the name of a namespace"),
    ("operator_slug", "wídgets", "cannot be the name of a namespace"),
    ("api_group", "example.com\n", "U+000A"),
    ("api_group", 'example.com"', "is not a lower-case domain"),
    ("api_group", "*.example.com", "is not a lower-case domain"),
    ("image_repository", "x y", "is not a lower-case image name"),
    ("image_repository", "x; docker run evil", "is not a lower-case image name"),
    ("image_repository", "$(id)", "is not a lower-case image name"),
    ("image_repository", "ghcr.io/../x", "is not a lower-case image name"),
    ("code_owners", "ann", "is not a list of owners"),
    ("code_owners", "@ann, @bob", "is not a list of owners"),
    ("code_owners", "@ann\n* @mallory", "U+000A"),
    ("code_owners", "@ann # trusted", "is not a list of owners"),
    ("code_owners", " ", "code_owners is empty"),
    ("security_contact", "write to us", "neither an address nor an https URL"),
    ("security_contact", "http://example.com", "neither an address nor an https URL"),
    ("security_contact", "javascript:alert(1)", "neither an address nor an https URL"),
    ("security_contact", "https://example.com/)[x](y", "neither an address nor an https URL"),
    ("security_contact", "a@b", "neither an address nor an https URL"),
]


# What cookiecutter itself refuses before our checks run: its words, but nothing on disk either.
REFUSED_BY_COOKIECUTTER = [
    ("operator_slug", ""),
    ("operator_slug", ".."),
    ("operator_slug", "a" * 300),
    ("description", "<< unfinished"),
    ("description", "<< undefined >>"),
    ("description", "<% if %>"),
    ("description", "<# no end"),
    ("watches", "everything"),
    ("licence", "GPL"),
    ("ci", "jenkins"),
    ("devcontainer", "perhaps"),
]

ACCEPTED = [
    ("operator_name", "!!!"),
    ("operator_name", "Überwächter & Söhne <b>"),
    ("operator_name", "日本"),
    ("operator_slug", "z"),
    ("operator_slug", "a" * 50),
    ("operator_slug", "a-1-b2"),
    ("description", "It's \"quoted\" and 'quoted'"),
    ("description", "ends with a backslash \\"),
    ("description", '"""'),
    ("description", "'''"),
    ("description", '\\"'),
    ("description", "\\u0041 \\x41 \\n"),
    ("description", "{{ x }} {% raw %} {# c #} ${{ y }} ${z}"),
    ("description", "a >> b %> c #>"),
    ("description", "emoji 🚀, combining e\u0301, 漢字, עברית"),
    ("description", "</script><!-- ]]> -->"),
    ("description", "key: value # comment, - item, &anchor *alias !tag |"),
    ("description", "$(touch x) `touch x` ; exit 1"),
    ("author", 'O\'Neil, "Ann" <ann@example.com>'),
    ("author", "__import__('os').abort()"),
    ("api_group", "a.b"),
    ("api_group", "1a.example-2.com"),
    ("image_repository", "widgets"),
    ("image_repository", "localhost:5000/a/b.c_d__e-f"),
    ("image_repository", "127.0.0.1:5000/x"),
    ("code_owners", "@ann @my-org/my-team bob@example.com"),
    ("security_contact", "security+us@example.co.uk"),
    ("security_contact", "https://example.com:8443/report?to=us"),
]


@pytest.mark.parametrize(("name", "text", "sentence"), REFUSED)
def test_an_impossible_answer_is_refused_in_a_sentence_with_nothing_left(
    name: str, text: str, sentence: str, tmp_path: Path
) -> None:
    baked = bake(tmp_path / "bake", {name: text})

    refusals = [line for line in baked.said.splitlines() if line.startswith("Refused: ")]
    assert baked.code != 0
    assert len(refusals) == 1
    assert sentence in refusals[0]
    assert (sorted((tmp_path / "bake" / "out").iterdir()), (tmp_path / "bake" / "outside").exists()) == ([], False)


@pytest.mark.parametrize(("name", "text"), REFUSED_BY_COOKIECUTTER)
def test_what_cookiecutter_itself_refuses_leaves_nothing_either(name: str, text: str, tmp_path: Path) -> None:
    baked = bake(tmp_path / "bake", {name: text})

    assert baked.code != 0
    assert baked.said
    assert sorted((tmp_path / "bake" / "out").iterdir()) == []


def test_every_refused_answer_gets_its_own_sentence(tmp_path: Path) -> None:
    baked = bake(tmp_path / "bake", {"operator_slug": "A", "description": "\t", "api_group": "x"})

    refusals = [line for line in baked.said.splitlines() if line.startswith("Refused: ")]
    assert [line.split()[1] for line in refusals] == ["operator_slug", "description", "api_group"]


def normal(name: str) -> str:
    """The name of a distribution as that of a package."""
    return re.sub(r"[-.]", "_", name).lower()


def needed() -> set[str]:
    """The distributions in the rendered pyproject.toml, those that they need, and what is imported of them."""
    text = (TEMPLATE / "<<cookiecutter.operator_slug>>" / "pyproject.toml").read_text("utf-8")
    left = re.findall(r'^ *(?:(?!extras)[a-z]+ = \[)?"([a-z][a-z0-9-]*)(?:[<>]=.*)?"', text, re.MULTILINE)
    listed = json.loads((TEMPLATE / "runtime" / "bonny" / "extras.json").read_text("utf-8")).values()
    left += [re.split(r"[^\w.-]", each, maxsplit=1)[0] for extra in listed for each in extra.get("packages", ())]
    found = set[str]()
    while left:
        name = normal(left.pop())
        if name not in found:
            found.add(name)
            with suppress(PackageNotFoundError):
                wanted = [each for each in requires(name) or () if "extra ==" not in each]
                left += [re.split(r"[^\w.-]", each, maxsplit=1)[0] for each in wanted]
    imported = {module for module, owners in packages_distributions().items() if found & set(map(normal, owners))}
    return found | {module for module in imported if re.fullmatch("[a-z][a-z0-9_]*", module)}


def test_no_package_that_the_operator_needs_can_be_the_name_of_one() -> None:
    """Regression: `uvicorn` was accepted, and its server was imported from the operator; `bonny-dev` lay beside
    vendor/bonny_dev."""
    hook = ast.parse((TEMPLATE / "hooks" / "pre_gen_project.py").read_text("utf-8"))
    lists = (each.value for each in hook.body if isinstance(each, ast.Assign) and ast.unparse(each.targets) == "TAKEN")
    taken = {word.value for word in ast.walk(next(lists)) if isinstance(word, ast.Constant)}

    assert {"uvicorn", "yaml", "pydantic_core", "prometheus_client", "hatchling"} <= needed()
    assert needed() - taken - sys.stdlib_module_names == set()
    assert {"bonny", "bonny_dev"} <= taken


def together(answers: list[tuple[str, str]]) -> list[dict[str, str]]:
    """The answers in as few renderings as questions allow: one answer of each."""
    rows: list[dict[str, str]] = []
    for name, text in answers:
        row = next((each for each in rows if name not in each), None)
        if row is None:
            rows.append(row := {})
        row[name] = text
    return rows


@pytest.mark.parametrize("answers", together(ACCEPTED))
def test_strange_answers_give_a_valid_project(answers: dict[str, str], tmp_path: Path) -> None:
    baked = bake(tmp_path / "bake", answers)

    assert baked.code == 0, baked.said
    table = tomllib.loads((baked.project / "pyproject.toml").read_text(encoding="utf-8"))
    values = {
        "description": table["project"]["description"],
        "author": table["project"]["authors"][0]["name"],
        "operator_slug": table["project"]["name"],
        "image_repository": table["tool"]["bonny"]["image"],
    }
    for name, text in answers.items():
        assert values.get(name, text) == text


@pytest.mark.parametrize(
    ("name", "check"),
    [("operator_slug", check_dns_label), ("api_group", check_group), ("image_repository", check_image)],
)
def test_what_the_template_accepts_the_runtime_accepts_too(name: str, check: object) -> None:
    """The hook cannot import the runtime, so its rules are written twice."""
    assert callable(check)
    for answer, text in ACCEPTED:
        if answer == name:
            assert check(text) == text


def test_the_defaults_of_cookiecutter_json_pass_the_runtimes_checks() -> None:
    defaults = json.loads((Path(__file__).parents[2] / "cookiecutter.json").read_text(encoding="utf-8"))

    check_group(defaults["api_group"])
    with pytest.raises(UsageError):
        check_group("example")


def test_the_next_commands_are_all_that_is_printed(tmp_path: Path) -> None:
    lines = bake(tmp_path / "bake").said.splitlines()

    assert [shlex.split(line)[0] for line in lines] == ["cd", "uv", "invoke", "invoke"]


def test_every_question_is_asked_in_words_and_every_choice_explained() -> None:
    context = json.loads((Path(__file__).parents[2] / "cookiecutter.json").read_text(encoding="utf-8"))
    prompts = context["__prompts__"]
    asked = {name: answer for name, answer in context.items() if not name.startswith("_")}

    assert set(prompts) == set(asked)
    assert len(asked) <= 12
    for name, answer in asked.items():
        if isinstance(answer, list):
            assert set(prompts[name]) == {"__prompt__", *answer}
