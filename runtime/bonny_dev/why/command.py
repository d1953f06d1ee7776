"""Command: finds the objects of `invoke why`, and prints the answers as text or JSON."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

from bonny.client.api import Client
from bonny.client.config import Cluster
from bonny.errors import UsageError
from bonny.kinds import Kind
from bonny.naming import is_object_name
from bonny.operator import Operator
from bonny.resource import key_of

from ..inside.reading import Inside, inside_of, object_query, with_ages
from . import answers as judged
from .answers import Answer, State
from .facts import Facts, all_facts, facts, operator_facts

# A person waits.
SECONDS: Final = 10.0
GREEN, RED, YELLOW, DIM, PLAIN = "\033[32m", "\033[31m", "\033[33m", "\033[2m", "\033[0m"
COLOURS: Final = {State.GOOD: GREEN, State.BAD: RED, State.WAITING: YELLOW, State.UNKNOWN: DIM}


async def why(
    cluster: Cluster,
    operator: Operator,
    target: str,
    *,
    namespace: str,
    everything: bool,
    as_json: bool,
    root: Path | None = None,
    url: str = "",
) -> bool:
    """Print the answers; returns whether nothing is wrong. `target` is KIND/NAME or KIND/NAMESPACE/NAME, or with
    `everything` a KIND, or empty for all kinds of the operator. `namespace` is that of the operator, and `url` the
    address of its console; without one it is looked for in the project at `root`, and in the cluster.

    Raises: `UsageError` for a target that cannot be; `ApiError` when the cluster does not answer.
    """
    kinds = named_kinds(operator, target, everything=everything)
    well, shown = True, []
    async with (
        Client(cluster, user_agent=operator.user_agent, timeout=SECONDS) as client,
        inside_of(url, client, operator, namespace, root) as inside,
    ):
        async for found in _found(client, operator, kinds, target, inside, namespace=namespace, everything=everything):
            given = judged.answers(found)
            whole = judged.verdict(given)
            well = well and whole.state is State.GOOD
            name = f"{found.kind.plural}/{key_of(found.resource) if found.resource else target.partition('/')[2]}"
            shown.append({"object": name, "verdict": asdict(whole), "answers": [asdict(each) for each in given]})
            if not as_json:
                print(*lines(name, whole, () if everything else given), sep="\n", flush=True)
    if as_json:
        print(json.dumps(shown if everything else shown[0], indent=2))
    elif not shown:
        print(f"there are no {' and no '.join(kind.plural for kind in kinds) or 'kinds'}")
    return well


async def _found(
    client: Client,
    operator: Operator,
    kinds: list[Kind],
    target: str,
    inside: Inside,
    *,
    namespace: str,
    everything: bool,
) -> AsyncIterator[Facts]:
    overview = asyncio.create_task(inside.ask("/overview"))
    of = await operator_facts(client, operator, namespace)
    of = replace(of, inside=with_ages(await overview))
    if everything:
        for kind in kinds:
            async for each in all_facts(client, kind, of=of):
                yield each
        return
    _, *where, name = target.split("/")
    kind, place = kinds[0], _namespace(kinds[0], where)
    remembered = (
        of.inside
        if "problem" in of.inside
        else await inside.ask("/object", **object_query(operator, kind, place, name))
    )
    yield await facts(client, kind, place, name, of=of, inside=remembered)


def named_kinds(operator: Operator, target: str, *, everything: bool) -> list[Kind]:
    """The kinds that `target` means: as people write them for kubectl. Raises: `UsageError`."""
    handled = [kind for controller in operator.controllers for kind in controller.kinds(operator.group)]
    own = [each.as_kind(operator.group) for each in operator.crds if each.storage or each.hub]
    known = list({(each.group, each.kind): each for each in (*own, *handled)}.values())
    word, *names = target.split("/")
    short = {(each.kind, name) for each in operator.crds for name in each.short_names}
    found = [
        each
        for each in known
        if word.lower() in (each.plural, each.resource, each.kind.lower()) or (each.kind, word) in short
    ]
    have = ", ".join(sorted(each.plural for each in known)) or "none"
    if everything and not target:
        return known
    if not found:
        raise UsageError(
            f"{target[:60]!r} names no kind of {operator.name}: it has {have}; write for example {_example(known)}"
        )
    if everything and names:
        raise UsageError(f"--all is for a kind, and {target[:60]!r} names an object: leave one of them out")
    if not everything and (len(names) not in (1, 2) or not all(map(is_object_name, names))):
        raise UsageError(f"{target[:60]!r} names no object: write for example {_example(found)}, or --all")
    if not everything and len(names) == 2 and not found[0].namespaced:
        raise UsageError(f"{found[0].plural} have no namespace: write {found[0].plural}/{names[1]}")
    return found


def _example(kinds: list[Kind]) -> str:
    return f"{kinds[0].plural}/{'default/' if kinds[0].namespaced else ''}x" if kinds else "widgets/default/x"


def _namespace(kind: Kind, where: list[str]) -> str:
    return (where[0] if where else "default") if kind.namespaced else ""


def lines(name: str, whole: Answer, given: list[Answer] | tuple[()]) -> Iterator[str]:
    """The text for a person: the verdict, and each answer with its details."""
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")  # https://no-color.org
    colours = COLOURS if coloured else dict.fromkeys(State, "")
    dim, plain = (DIM, PLAIN) if coloured else ("", "")
    yield f"{colours[whole.state]}{whole.state:<4}{plain}  {name}: {whole.text}"
    for each in given:
        yield f"{colours[each.state]}{each.state:<4}{plain}  {each.question:<11}  {each.text}"
        yield from (f"{'':19}{dim}{line}{plain}" for line in each.detail)
