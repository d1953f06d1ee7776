"""The reference is what the docstrings say now, each function in it has an example, and the examples run.

Examples that need an API server are run by `tests/integration/test_reference.py`.
"""

from __future__ import annotations

import inspect
import re

import pytest

from tests.support.examples import Example, examples_of, run
from tools import reference
from tools.reference import PAGES, Page

PAGE = pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
EXAMPLES = [example for page in PAGES for example in examples_of(page.name) if not example.needs_a_server]


@PAGE
def test_a_page_is_what_the_docstrings_say_now(page: Page) -> None:
    written = (reference.TARGET / f"{page.name}.md").read_text("utf-8")
    assert written == reference.page(page), "run `invoke reference`"


@PAGE
def test_everything_that_can_be_called_has_an_example(page: Page) -> None:
    assert reference.wanting_examples(page) - reference.examples(page.name).keys() == set()


@PAGE
def test_every_example_stands_on_its_page(page: Page) -> None:
    text = reference.page(page)
    assert [name for name, body in reference.examples(page.name).items() if body not in text] == []


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
async def test_an_example_runs(example: Example, request: pytest.FixtureRequest) -> None:
    await run(example, request)


def test_a_promise_stands_out_and_a_placeholder_is_no_html() -> None:
    assert reference.markdown("Raises: `Not<type>` for <plural>.") == "**Raises:** `Not<type>` for &lt;plural>."
    assert reference.markdown("    code(<here>)") == "    code(<here>)"


def test_a_long_signature_has_a_line_for_each_parameter() -> None:
    (node,) = reference.ast.parse(
        inspect.cleandoc(
            """
            async def register(
                self, resource: dict[str, int], group: int = 0, *, related: tuple[str, ...] = (), message: str = ""
            ) -> None: ...
            """
        )
    ).body
    assert isinstance(node, reference.ast.AsyncFunctionDef)
    assert reference.signature(node, called="axn.register", bound=True) == inspect.cleandoc(
        """
        await axn.register(
            resource: dict[str, int],
            group: int = 0,
            *,
            related: tuple[str, ...] = (),
            message: str = "",
        ) -> None
        """
    )


def test_any_number_of_arguments_is_part_of_a_signature() -> None:
    (node,) = reference.ast.parse(
        "def pruned(token: int, *names: str, all: bool = False, **more: str) -> None: ..."
    ).body
    assert isinstance(node, reference.ast.FunctionDef)
    assert reference.signature(node, called="pruned") == (
        "pruned(token: int, *names: str, all: bool = False, **more: str) -> None"
    )


@PAGE
def test_every_heading_has_a_text(page: Page) -> None:
    assert re.findall(r"^#+ *$", reference.page(page), re.MULTILINE) == []
