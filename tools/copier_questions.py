"""Copier questions: writes copier.yml from cookiecutter.json and the checks of the hook.

You need it after a change of a question or of a check. Hooks do not run under copier: each refusal of
`hooks/pre_gen_project.py` is a validator there.
"""

from __future__ import annotations

import ast
import json
import keyword
import re
import sys
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parents[1]
HOOK: Final = ROOT / "hooks" / "pre_gen_project.py"
TARGET: Final = ROOT / "copier.yml"
FOLDER: Final = "<<cookiecutter.operator_slug>>"
# Modules of Python that are not in each version from 3.11 to 3.14.
OTHER_MODULES: Final = (
    *("aifc", "annotationlib", "asynchat", "asyncore", "audioop", "cgi", "cgitb", "chunk", "compression", "crypt"),
    *("distutils", "imghdr", "imp", "lib2to3", "mailcap", "msilib", "nis", "nntplib", "ossaudiodev", "pipes"),
    *("smtpd", "sndhdr", "spwd", "sunau", "telnetlib", "uu", "xdrlib", "pathlib", "string", "concurrent"),
)
# copier has no `slugify`. Letters with accents become "-" here, and plain letters there.
SLUGIFY: Final = "operator_name | slugify(max_length=50)"
AS_SLUG: Final = "(operator_name | lower | regex_replace('[^a-z0-9]+', '-'))[:50].strip('-')"
HEADER: Final = """\
# The questions of cookiecutter.json for copier, which renders the same tree without hooks. Written by
# `python tools/copier_questions.py`. After copying, run the command that is printed. See docs/how-to/update.md.
"""
MESSAGE: Final = """\
cd << operator_slug >> && PYTHONPATH=vendor python -m bonny_dev.deliver   # packs the developer tools
git init && git add . && git commit -m "Render the template"
uv sync && . .venv/bin/activate   # without uv: python3 -m venv .venv && . .venv/bin/activate && pip install -e '.[dev]'
invoke gen-controller Widget widgets --version v1
"""


def constants() -> dict[str, Any]:
    """The limits, names and patterns of the hook, which cannot be imported: it is a template itself."""
    names = (
        "LONGEST",
        "OPTIONAL",
        "TAKEN",
        "WORD",
        "SLUG",
        "GROUP",
        "REGISTRY",
        "PATH",
        "IMAGE",
        "ADDRESS",
        "OWNERS",
        "CONTACT",
    )
    found: dict[str, Any] = {"re": re}
    for node in ast.parse(HOOK.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in names:
            exec(compile(ast.Module([node], []), str(HOOK), "exec"), found)
    return found


def taken() -> list[str]:
    """The slugs that are names of Python, of Windows or of a package that the operator needs."""
    names = {*constants()["TAKEN"], *sys.stdlib_module_names, *OTHER_MODULES, *keyword.kwlist, *keyword.softkwlist}
    return sorted({each.replace("_", "-") for each in names if re.fullmatch("[a-z][a-z0-9_]*", each)})


def validator(name: str) -> str:
    """The refusals of one answer, in the order of the hook; an empty text accepts it."""
    known = constants()
    rules = [
        (f"not {name}.strip()", "is empty: give at least one word"),
        (
            f"{name} | length > {known['LONGEST'][name]}",
            f"has << {name} | length >> characters: use at most {known['LONGEST'][name]}",
        ),
        (f"not {name}.isprintable()", "holds a control character: use one line of printable text and plain spaces"),
        (f"{name} | regex_search('<[%#<]')", "holds text that begins template code here: leave it out"),
    ]
    shape = {
        "operator_slug": [
            (
                unlike(name, known["SLUG"]),
                "cannot be the name of a namespace and a Python package: begin with a letter and use lower-case letters, digits "
                "and single '-' between them, for example widgets-operator",
            ),
            (
                f"{name} in {taken()}",
                "is taken by Python, by Windows or by a package that the operator needs: choose another name",
            ),
            (
                f"{name} == 'default' or {name}.startswith('kube-')",
                "would be one of Kubernetes' own namespaces: choose another name",
            ),
        ],
        "api_group": [
            (
                f"{unlike(name, known['GROUP'])} or {name} | regex_search('[^.]{{64}}')",
                "is not a lower-case domain with a dot in it: use one of yours, for example example.com",
            ),
            (
                f"{name} | regex_search('(^|\\\\.)(k8s|kubernetes)\\\\.io$')",
                "is kept for Kubernetes itself: use a domain of yours, for example example.com",
            ),
        ],
        "image_repository": [
            (
                unlike(name, known["IMAGE"]),
                "is not a lower-case image name without tag and digest: write for example registry.example.com/team/widgets-operator",
            )
        ],
        "code_owners": [
            (
                unlike(name, known["OWNERS"]),
                "is not a list of owners: write for example @ann @my-org/my-team, or leave it empty",
            )
        ],
        "security_contact": [
            (
                unlike(name, known["CONTACT"]),
                "is neither an address nor an https URL: write for example security@example.com, or leave it empty",
            )
        ],
    }
    rules += shape.get(name, [])
    branches = "".join(
        f"<% {'if' if number == 0 else 'elif'} {test} %>{name} {sentence}\n"
        for number, (test, sentence) in enumerate(rules)
    )
    whole = f"{branches}<% endif %>"
    return f"<% if {name} %>{whole}<% endif %>" if name in known["OPTIONAL"] else whole


def unlike(name: str, pattern: re.Pattern[str]) -> str:
    """An expression of Jinja that is true for a text that does not match as a whole."""
    ascii_only = "(?a)" if pattern.flags & re.ASCII else ""
    text = f"{ascii_only}^(?:{pattern.pattern})\\Z".replace("\\", "\\\\").replace("'", "\\'")
    return f"not {name} | regex_search('{text}')"


def question(name: str, default: Any, prompt: Any) -> dict[str, Any]:
    """One question, as copier reads it."""
    if isinstance(default, bool):
        return {"type": "bool", "help": prompt, "default": default}
    if isinstance(default, list):
        choices = {prompt[each]: each for each in default}
        return {"type": "str", "help": prompt["__prompt__"], "choices": choices, "default": default[0]}
    return {"type": "str", "help": prompt, "default": plain(default), "validator": validator(name)}


def plain(text: str) -> str:
    """A default of cookiecutter, whose answers have a namespace."""
    return text.replace("cookiecutter.", "").replace(SLUGIFY, AS_SLUG)


def contents() -> str:
    """The text of copier.yml."""
    context = json.loads((ROOT / "cookiecutter.json").read_text("utf-8"))
    prompts = context["__prompts__"]
    asked = {
        name: question(name, default, prompts[name]) for name, default in context.items() if not name.startswith("_")
    }
    hidden = {name: default for name, default in context.items() if name.startswith("__") and name != "__prompts__"}
    delimiters = dict(context["_jinja2_env_vars"])
    before = "".join(f"<% set {name} %>{plain(value)}<% endset %>" for name, value in hidden.items())
    values = ", ".join(f"'{name}': {name}" for name in asked) + "".join(
        f", '{name}': {name} | string" for name in hidden
    )
    whole = {
        "_min_copier_version": "9.19.0",
        "_subdirectory": f"<% raw %>{FOLDER}<% endraw %>",
        "_templates_suffix": "",
        "_envops": {**delimiters, "keep_trailing_newline": True},
        "_exclude": ["__pycache__", "*.pyc", "<% if _copier_operation == 'update' %>vendor<% endif %>"],
        "_message_after_copy": MESSAGE,
        **asked,
        "cookiecutter": {"type": "json", "when": False, "default": f"{before}<< {{{values}}} | tojson >>"},
    }
    return HEADER + yaml.safe_dump(whole, sort_keys=False, allow_unicode=True, width=120)


if __name__ == "__main__":
    TARGET.write_text(contents(), encoding="utf-8")
