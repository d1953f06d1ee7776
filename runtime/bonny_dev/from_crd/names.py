"""Names: the names of fields and classes in Python, from the names in a definition."""

from __future__ import annotations

import builtins
import itertools
import keyword
import re
from collections.abc import Callable, Container, Sequence
from typing import Final

from bonny.api import Model
from bonny.naming import camel_case

from ..naming import RESERVED_KINDS

# As annotations use them: below a field of such a name, they would mean the field.
_TYPES: Final = frozenset(("str", "int", "float", "bool", "list", "dict", "datetime", "date"))
_HARD_TO_READ: Final = frozenset("lIO")  # ruff, E741
# A class with a shorter name, such as To, has no meaning without the field around it.
_SHORT: Final = 2
# Before a capital, but `IPs` is one word.
_WORD: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z](?!s(?![a-z]))[a-z])")


def field_name(wire: str, taken: Container[str] = (), *, reserved: Callable[[str], object] = lambda _: False) -> str:
    """The attribute for the field `wire`: `maxSize` gives `max_size`, `class` gives `class_`."""
    name = re.sub(r"[\W_]+", "_", _WORD.sub("_", wire), flags=re.ASCII).strip("_").lower() or "field"
    if name[0].isdigit():
        name = f"field_{name}"
    if keyword.iskeyword(name) or name in _TYPES | _HARD_TO_READ or hasattr(Model, name) or reserved(name):
        name = f"{name}_"
    while name in taken:
        name = f"{name}_2"
    return name


def leads_back(name: str, wire: str) -> bool:
    """Whether a field needs no `alias`."""
    return camel_case(name) == wire


def class_name(path: Sequence[str], taken: Container[str]) -> str:
    """A free name for the class at a path of fields: by the last of them, by more of them on a clash.

    `[]` and `.*` stand for the items of the list or mapping before them, which give their singular.
    """
    words: list[str] = []
    for part in path:
        if part in ("[]", ".*"):
            words[-1] = _singular(words[-1])
        else:
            words.append("".join(word[:1].upper() + word[1:] for word in re.split(r"[\W_]+", part, flags=re.ASCII)))
    names = ["".join(words[start:]) for start in range(len(words) - 1, -1, -1)]
    long = [name for name in names if len(name) > _SHORT and _importable(name)]
    last = names[-1] if _importable(names[-1]) else f"A{names[-1]}"
    numbered = (f"{last}{number}" for number in itertools.count(2))
    return next(name for name in itertools.chain(long, (last,), numbered) if name not in taken)


def _importable(name: str) -> bool:
    return name.isidentifier() and name not in RESERVED_KINDS and not hasattr(builtins, name)


def _singular(word: str) -> str:
    if re.search("[^aeiou]ies$", word):
        return f"{word[:-3]}y"
    if re.search("(ss|sh|ch|x|us|ias)es$", word):
        return word[:-2]
    plural = re.search("[^su]s$", word) and re.search("[aeiouy].", word[:-1], re.IGNORECASE)  # not of tls and os
    return word[:-1] if plural else word
