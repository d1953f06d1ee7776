"""Command line: refuses misspelt tasks and options with one sentence, before invoke does.

You need it in tasks.py, as the last line: `check_command_line(ns)`. invoke loads tasks.py before it looks at the words
for the tasks, and has no hook for its own messages. Where there is no tasks.py, its message is what one sees.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterable
from copy import deepcopy
from pathlib import Path
from typing import Final

from invoke.collection import Collection
from invoke.exceptions import Exit, ParseError
from invoke.parser import Parser
from invoke.parser.context import ParserContext
from invoke.program import Program

PROGRAMS: Final = ("inv", "invoke")
# Options that people expect there belong to the programs that these tasks run.
PROGRAMS_OF: Final = {
    "lint": "run `ruff check --fix`",
    "test": "for options of pytest run `pytest`, such as `pytest -k NAME`",
}
UNKNOWN: Final = re.compile(r"No idea what '(.*)' is!")
WITHOUT_VALUE: Final = re.compile(r"Flag <Argument: ([\w-]+)")


def check_command_line(ns: Collection) -> None:
    """Compare the words of this process, if it is invoke, with the tasks in `ns`.

    Raises: `Exit` with code 2 and a sentence that says what is wrong, and what comes close.
    """
    program = Path(sys.argv[0])
    if program.stem not in PROGRAMS and program.parent.name != "invoke":
        return  # tasks.py was imported by something else
    core = Parser(initial=Program().initial_context, ignore_unknown=True).parse_argv(sys.argv[1:])
    contexts = deepcopy(ns).to_contexts()  # invoke removes the help texts that it reads: leave them to --help
    parser = Parser(initial=Program().initial_context, contexts=contexts)
    wanted = core[0].args["help"].value
    if isinstance(wanted, str) and wanted not in parser.contexts:
        raise Exit(_no_task(wanted, parser), code=2)
    try:
        tasks = parser.parse_argv(core.unparsed)
    except ParseError as error:
        raise Exit(_sentence(error, parser), code=2) from error
    except ValueError as error:
        raise Exit(f"an option needs a whole number: {error}", code=2) from error
    for task in tasks:  # where an argument is missing, invoke takes --help for it
        if any(argument.value in ("-h", "--help") for argument in task.positional_args):
            raise Exit(_needs(task), code=2)


def _sentence(error: ParseError, parser: Parser) -> str:
    task = error.context
    name = "invoke" if task is None or task.name is None else task.name
    text = str(error)
    if match := UNKNOWN.fullmatch(text):
        word = match[1]
        if word.startswith("-"):
            otherwise = PROGRAMS_OF.get(name) or _help(name)
            return f"{name} has no option {word}: {_advice(word, task.flags if task else (), otherwise)}"
        return _no_task(word, parser, after=task)
    if match := WITHOUT_VALUE.match(text):
        return f"the option --{match[1]} of {name} needs a value: {_help(name)}"
    return _needs(task) if task is not None and task.missing_positional_args else text


def _needs(task: ParserContext) -> str:
    words = " ".join(str(argument.name).upper() for argument in task.positional_args)
    return f"{task.name} needs {words}: {_help(str(task.name))}"


def _no_task(word: str, parser: Parser, *, after: ParserContext | None = None) -> str:
    more = f"{after.name} takes no further argument, and " if after is not None and after.name else ""
    return f"{more}there is no task {word}: {_advice(word, parser.contexts, '`invoke --list` shows all tasks')}"


def _help(name: str) -> str:
    return "`invoke --help` shows its options" if name == "invoke" else f"`invoke --help {name}` shows its arguments"


def _advice(word: str, names: Iterable[str], otherwise: str) -> str:
    close = difflib.get_close_matches(word, names, n=1)
    return f"did you mean {close[0]}?" if close else otherwise
