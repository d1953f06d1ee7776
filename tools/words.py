"""Words: finds words and sentences that are not plain English (see CONTRIBUTING.md).

python tools/words.py          lists findings in checked files, counts the others; exit code 1 if a rule is broken
python tools/words.py --all    lists the findings in counted folders, too

Checked: prose of Markdown and Python code on it, prompts of cookiecutter.json, examples, rendered files and templates,
YAML, dashboards, and the strings of the runtime and of its tools: errors, log texts and keys, metrics, results, help.
Names are read as words: `bonny_stream_failing`, `OperatorAbsent`. Counted, against a maximum that may only fall:
comments and docstrings of the runtime, all text of other Python files, reference pages, which are generated from
docstrings, names of tests, and unreleased changelog entries. Skipped: decisions and released changelog entries, which
do not change; console output; names between backticks; other text of tests. A finding cannot be disabled for a line:
rewrite the sentence. `ALLOWED` lists the few phrases that are right where they are, each with its reason.
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
    "ALLOWED",
    "RULES",
    "Allowed",
    "Finding",
    "Rule",
    "files",
    "findings",
    "in_markdown",
    "in_names_of_tests",
    "in_plain",
    "in_prompts",
    "in_python",
    "main",
    "unreleased",
]

ROOT: Final = Path(__file__).resolve().parent.parent
TEMPLATE: Final = "<<cookiecutter.operator_slug>>/"

CHECKED: Final = (
    "README.md",
    "CONTRIBUTING.md",
    ".github/",
    "docs/",
    TEMPLATE,
    "examples/",
    "tasks.py",
    "docs/reference/tasks.md",
)
LEFT_OUT: Final = ("docs/decisions/", "docs/reference/examples/", "tools/words.py", "tests/unit/test_words.py")
# Files that are prose and names from the first line to the last. All are checked but those of tests and benchmarks.
PLAIN: Final = (".yaml", ".yml", ".toml", ".j2", "Dockerfile", "dashboard.json", "renovate.json", "devcontainer.json")
# Folders whose users see the strings: they are checked, and only comments and docstrings are counted.
SHOWN: Final = ("runtime/bonny/", "runtime/bonny_dev/")
# The most findings that each file or folder may have. Lowered whenever there are fewer, never raised. They were counted
# again, once, when the rules for noun clauses, for things that speak and for names of tests came (decision 0109).
MOST: Final = {
    "CHANGELOG.md": 0,
    "docs/reference/": 105,
    "runtime/bonny/": 271,
    "runtime/bonny_dev/": 171,
    "bench/": 121,
    "hooks/": 7,
    "tools/": 68,
    "tests/": 1_061,
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
    # A question may ask what; a noun clause hides the noun.
    _rule(r"\bwhat(?:ever)?\b(?![^.!|]*\?)", "a noun: the values, the changes, the reason", flags=re.ASCII),
    _rule(r"\b(?:(?<!,\s)say|says|said|saying)\b", "things do not speak: show, list, contain, set, require"),
    _rule(r"\b(?:knows|knew|(?:is|are|was|were) (?:not |already )?known)\b", "things do not know: has, contains"),
    _rule(r"\b(?:asks|asked|asking)\b", "things do not ask: call, request, require"),
    _rule(r"\b(?:go|goes|going|went) on\b", "continue", flags=re.ASCII),
    _rule(r"\b(?:the|that) one(?= (?:that|which|of|in|with|before|after|for)\b|[.,;:)])", "the noun again"),
    _rule(r"\bone of (?:its|their|your) own\b", "its own, with the noun"),
    _rule(r"\bwhich\b[^.!?;:|]*\bwhich\b", "one `which` a sentence"),
    _rule(r"\ba yes\b", "a positive answer, a permission"),
    _rule(r"\bany more\b", "no longer, or the state now"),
    _rule(r"\b(?:time (?:is|was) over|would not end|k(?:eep|eeps|ept) up)\b", "exceeded, ignored, cannot renew"),
    _rule(r"\b(?:out of turn|too late for|alone in|in the place of)\b", "out of order, after, has other, instead of"),
    _rule(r"\b(?:at hand|at work|strike)\b", "ready, running, inject"),
    _rule(r"\bthat leads\b", "the leader"),
    _rule(r"\bclients? that may\b", "authorized clients"),
    _rule(r"\bcannot be in (?:its|a) namespace\b", "cluster-scoped"),
    _rule(r"\buse this name themselves\b", "already uses the name"),
    # A log text is a sentence: who rejects it, and which action failed?
    _rule(r"\A\w+ (?:is|are) refused\Z", "the API server rejected it"),
    _rule(r"\Ano new \w+\Z", "cannot load it, and the consequence"),
    _rule(r"\Awaits\Z", "retry"),
)  # fmt: skip


class Allowed(NamedTuple):
    """A phrase that is right in one file, and the reason."""

    name: str
    phrase: str
    reason: str


ALLOWED: Final = (Allowed("runtime/bonny_dev/tasks/command_line.py", "No idea what", "recognizes a message of invoke"),)


class Finding(NamedTuple):
    """A piece of text that breaks a rule; `shown` if users see it: not in a comment or docstring."""

    line: int
    text: str
    instead: str
    shown: bool = True


def in_text(text: str, *, line: int = 1) -> Iterator[Finding]:
    """The findings in prose whose first line has the number `line`."""
    found = dict[int, Finding]()  # one for each place, by the first rule that finds it
    for pattern, instead in RULES:
        for match in pattern.finditer(text):
            at = Finding(line + text.count("\n", 0, match.start()), " ".join(match[0].split()), instead)
            found.setdefault(match.start(), at)
    yield from found.values()


# --- forms of text ----------------------------------------------------------------------------------------------------

FENCE: Final = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
JINJA: Final = re.compile(r"<%.*?%>|<<.*?>>")
NAME: Final = re.compile(r"`[^`\n]*`")
IDENTIFIER: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[_-][A-Za-z0-9]+)*")
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
    tree = ast.parse(source)
    unseen = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = NAME.sub(_blank, node.value)
            found = in_text(_spaced(text) if IDENTIFIER.fullmatch(text) else text, line=node.lineno)
            yield from (each._replace(shown=id(node) not in unseen) for each in found)
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
        found = in_text(NAME.sub(_blank, text), line=block[0].start[0])
        yield from (each._replace(shown=False) for each in found)


def in_names_of_tests(source: str) -> Iterator[Finding]:
    """The findings in the names of tests: the list of names reads as the specification."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield from in_text(_spaced(node.name), line=node.lineno)


def in_plain(text: str) -> Iterator[Finding]:
    """The findings in YAML, TOML, dashboards, Dockerfiles and templates: their comments, values and names."""
    yield from in_text(_spaced(NOT_PROSE.sub(_blank, re.sub(r"\{\{.*?\}\}|\{%.*?%\}", _blank, text))))


def _spaced(text: str) -> str:
    """The text with its names as words: `queue_oldest` and `QueueOld` become `queue oldest` and `Queue Old`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", re.sub(r"(?<=[A-Za-z0-9])[_-](?=[A-Za-z0-9])", " ", text))


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
    for allowed in ALLOWED:
        if name == allowed.name:
            text = text.replace(allowed.phrase, "\N{MIDDLE DOT}")
    match Path(name).suffix:
        case _ if is_plain(name):
            yield from in_plain(text)
        case ".md":
            yield from in_markdown(unreleased(text) if name == "CHANGELOG.md" else text)
        case ".py" if name.startswith("tests/"):
            yield from in_names_of_tests(text)
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
    names = [name for name in names if not name.startswith(LEFT_OUT)]
    texts = [name for name in names if name.endswith((".md", ".py"))]
    counted = {folder: [n for n in texts if n.startswith(folder) and n not in CHECKED] for folder in MOST}
    checked = [n for n in texts if n in CHECKED or (n.startswith(CHECKED) and not n.startswith(tuple(MOST)))]
    plain = [n for n in names if is_plain(n) and not n.startswith(("tests/", "bench/"))]
    return [*checked, *plain, "cookiecutter.json"], counted


def is_plain(name: str) -> bool:
    """Whether a file is prose and names as a whole. Names of rendered files may end in a condition."""
    return JINJA.sub("", name).endswith(PLAIN)


def main(arguments: list[str]) -> int:
    checked, counted = files()
    broken = [_sentence(name, each) for name in checked for each in sorted(findings(name))]
    exceeded = False
    totals = []
    for folder, names in counted.items():
        found = [(name, each) for name in names for each in sorted(findings(name))]
        if folder in SHOWN:
            broken += [_sentence(name, each) for name, each in found if each.shown]
            found = [(name, each) for name, each in found if not each.shown]
        if arguments == ["--all"]:
            _print([_sentence(name, each) for name, each in found])
        exceeded |= len(found) > MOST[folder]
        totals.append(f"{folder:20}{len(found):5,} findings, {_verdict(len(found), MOST[folder])}")
    _print(broken)
    _print(totals)
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
