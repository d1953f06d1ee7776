"""Words: finds words and sentences that are not plain English (see CONTRIBUTING.md).

python tools/words.py          lists findings in checked files, counts the others; exit code 1 if a rule is broken
python tools/words.py --all    lists the findings in counted folders, too

Checked: prose of Markdown and Python code on it, prompts of cookiecutter.json, examples, rendered files and templates,
YAML, dashboards, and the strings of the runtime and of its tools: errors, log texts and keys, metrics, results, help.
Names are read as words: `bonny_stream_failing`, `OperatorAbsent`. Counted, against a maximum that may only fall:
comments and docstrings of the runtime, all text of other Python files, reference pages, which are generated from
docstrings, names of tests, and unreleased changelog entries. Skipped: decisions and released changelog entries, which do
not change; console output; names between backticks. A finding cannot be disabled for a line: rewrite the sentence.
`ALLOWED` lists the few texts of others, or with another meaning, each with its reason.
"""

from __future__ import annotations

import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

__all__ = [
    "RULES",
    "Finding",
    "Rule",
    "files",
    "findings",
    "in_markdown",
    "in_prompts",
    "in_python",
    "main",
    "unreleased",
]

ROOT: Final = Path(__file__).resolve().parent.parent
TEMPLATE: Final = "<<cookiecutter.operator_slug>>/"

CHECKED: Final = (
    *("README.md", "CONTRIBUTING.md", "docs/", TEMPLATE, "examples/", "tasks.py", "pyproject.toml"),
    *("runtime/bonny_dev/manifest/", "runtime/bonny_dev/sandbox/kubeconfig.yaml", "runtime/bonny_dev/scaffold/"),
)
# Forms that are prose, or names, from the first line to the last.
PLAIN: Final = (".yaml", ".yml", ".toml", ".j2", "Dockerfile", "dashboard.json", "renovate.json", "devcontainer.json")
LEFT_OUT: Final = ("docs/decisions/", "docs/reference/examples/", "tools/words.py")
# The most findings that each file or folder may have. Lowered whenever there are fewer, never raised.
MOST: Final = {
    "CHANGELOG.md": 0,
    "docs/reference/": 10,
    "runtime/bonny/": 1,
    "runtime/bonny_dev/": 0,
    "bench/": 54,
    "hooks/": 4,
    "tools/": 19,
}


class Rule(NamedTuple):
    """A pattern that is out, and the words to use in its place."""

    pattern: re.Pattern[str]
    instead: str


def _rule(pattern: str, instead: str, *, flags: int = re.IGNORECASE) -> Rule:
    return Rule(re.compile(pattern.replace(" ", r"\s+"), flags), instead)


RULES: Final = (
    _rule(r"\b(?:tells?|telling|told)\b", "log, report, send, record, show"),
    _rule(r"\banew\b", "again"),
    _rule(r"\bmend(?:s|ed|ing)?\b", "fix"),
    _rule(r"\bin vain\b", "without effect"),
    _rule(r"\bat home\b", "locally"),
    _rule(r"\btroubles?\b", "error"),
    _rule(r"\bhandlings?\b", "reconcile, handler run"),
    _rule(r"\bfigures\b", "metrics, measurements"),
    _rule(r"\b(?:thrice|hence|whereby|be it|for want of|one's own|by whom ?ever)\b", "words of today"),
    _rule(r"\bkin\b", "children"),
    _rule(r"\b(?:nobody|somebody|anybody|whoever|whomever)\b(?:'s)?", "a noun: user, replica, client"),
    _rule(r"\bthose (?:that|who|of)\b", "the noun again"),
    _rule(r"\bof (?:others|theirs)\b", "a noun: other users, other controllers"),
    _rule(r"(?<!\bthere\s)\b(?:is|are|was|were) no (?!longer\b|more\b)", "is not a, has no"),
    _rule(r", say\b(?=[.,;:)])", "for example"),
    # A sentence, or a cell of a table, that begins so has no subject; a question may.
    _rule(r"\b(?:What|Whatever|Who)\b(?![^.!|\n]*(?:\n[^.!|\n]+)*\?)", "begin with a noun or a verb", flags=re.ASCII),
    _rule(r"(?<=\|\s)(?:what|who|it|they|them|those|that)\b", "begin the cell with a noun or a verb", flags=re.ASCII),
)  # fmt: skip


class Finding(NamedTuple):
    """A piece of text that breaks a rule."""

    line: int
    text: str
    instead: str


def in_text(text: str, *, line: int = 1) -> Iterator[Finding]:
    """The findings in prose whose first line has the number `line`."""
    for pattern, instead in RULES:
        for match in pattern.finditer(text):
            yield Finding(line + text.count("\n", 0, match.start()), " ".join(match[0].split()), instead)


# --- forms of text ----------------------------------------------------------------------------------------------------

FENCE: Final = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
JINJA: Final = re.compile(r"<%.*?%>|<<.*?>>")
NAME: Final = re.compile(r"`[^`\n]*`")
NOT_PROSE: Final = re.compile(r"<!--.*?-->|(`+)[^`].*?\1|(?<=\])\([^)\s]*\)|https?://\S+|<%.*?%>|<<.*?>>", re.DOTALL)


def in_markdown(text: str) -> Iterator[Finding]:
    """The findings in the prose of a page, and in its Python code."""
    for fence in FENCE.finditer(text):
        if fence[2] == "python":
            before = text.count("\n", 0, fence.start(3))
            with suppress(SyntaxError):  # a signature in the reference is not a statement
                yield from (each._replace(line=each.line + before) for each in in_python(fence[3]))
    yield from in_text(NOT_PROSE.sub(_blank, FENCE.sub(_blank, text)))


def _blank(match: re.Match[str]) -> str:
    """Nothing but its line ends, and a mark, so that sentences around it stay apart."""
    return "\N{MIDDLE DOT}" + "\n" * match[0].count("\n")


def in_python(source: str) -> Iterator[Finding]:
    """The findings in comments, docstrings and other strings."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from in_text(NAME.sub(_blank, node.value), line=node.lineno)
    block: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if block and token.start[0] != block[-1].start[0] + 1:
                yield from _in_comments(block)
                block = []
            block.append(token)
    yield from _in_comments(block)


def _in_comments(block: list[tokenize.TokenInfo]) -> Iterator[Finding]:
    if block:
        text = "\n".join(each.string.lstrip("# ") for each in block)
        yield from in_text(NAME.sub(_blank, text), line=block[0].start[0])


def in_prompts(text: str) -> Iterator[Finding]:
    """The findings in the questions of cookiecutter.json."""
    for prompt in _strings(json.loads(text)["__prompts__"]):
        line = text.count("\n", 0, text.find(json.dumps(prompt, ensure_ascii=False))) + 1
        yield from (each._replace(line=line) for each in in_text(prompt))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _strings(each)


# --- files ------------------------------------------------------------------------------------------------------------


def findings(name: str) -> Iterator[Finding]:
    """The findings in one file of this repository."""
    text = (ROOT / name).read_text("utf-8")
    match Path(name).suffix:
        case ".md":
            yield from in_markdown(unreleased(text) if name == "CHANGELOG.md" else text)
        case ".py":
            yield from in_python(JINJA.sub("x", text) if name.startswith(TEMPLATE) else text)
        case ".json":
            yield from in_prompts(text)


def unreleased(changelog: str) -> str:
    """The entries that may still be written otherwise."""
    head, mark, rest = changelog.partition("\n## [Unreleased]\n")
    return head + mark + re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def files() -> tuple[list[str], dict[str, list[str]]]:
    """The names of the files that are checked, and of those that are counted, by folder."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = [name for name in listed.split("\0") if name and (ROOT / name).is_file()]
    texts = [name for name in names if name.endswith((".md", ".py")) and not name.startswith(LEFT_OUT)]
    counted = {folder: [name for name in texts if name.startswith(folder)] for folder in MOST}
    checked = [name for name in texts if name.startswith(CHECKED) and not name.startswith(tuple(MOST))]
    return [*checked, "cookiecutter.json"], counted


def main(arguments: list[str]) -> int:
    checked, counted = files()
    broken = [_sentence(name, each) for name in checked for each in sorted(findings(name))]
    _print(broken)
    exceeded = False
    for folder, names in counted.items():
        found = [_sentence(name, each) for name in names for each in sorted(findings(name))]
        if arguments == ["--all"]:
            _print(found)
        exceeded |= len(found) > MOST[folder]
        print(f"{folder:20}{len(found):5,} findings, {_verdict(len(found), MOST[folder])}")
    return int(bool(broken) or exceeded)


def _verdict(count: int, most: int) -> str:
    if count > most:
        return f"more than the {most:,} that are allowed"
    return f"as allowed: lower the maximum of {most:,}" if count < most else "as allowed"


def _print(lines: list[str]) -> None:
    print(*lines, sep="\n", end="\n" if lines else "")


def _sentence(name: str, finding: Finding) -> str:
    return f"{name}:{finding.line}: {finding.text!r} is not plain English: {finding.instead}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
