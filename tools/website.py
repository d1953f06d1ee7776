"""Website: builds the documentation as a site that needs no server and no network.

    python -m tools.website [--out build/site]

The pages are plain Markdown, written for the forge. They are copied with their places, and changed where the forge and
the site differ: a link to a file that is not a page leads to that file on the forge, at this commit. A broken link ends
the build, with one line each. The generator has an environment of its own, `build/site/.venv`: neither the tests nor a
rendered repository need it. `docs/site` holds the configuration and the pinned versions.
"""

from __future__ import annotations

import argparse
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

__all__ = ["BuildError", "broken", "build", "foreign", "in_navigation", "pages", "staged"]

ROOT: Final = Path(__file__).resolve().parent.parent
SETTINGS: Final = ROOT / "docs" / "site"
OUT: Final = ROOT / "build" / "site"
# Where the template is published; a workflow of the forge has its own place in the environment.
FORGE: Final = "https://github.com/org/bonny-template"
# Pages outside `docs/`.
TOP: Final = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "examples/README.md")
NOT_CODE: Final = re.compile(r"(^( *)(?:```|~~~).*?^\2(?:```|~~~) *$|(`+)[^`].*?\3)", re.MULTILINE | re.DOTALL)
LINK: Final = re.compile(r"(?<=\]\()([^)\s]+)(?=[)\s])|(?<=href=\")([^\"]+)(?=\")")
# Decisions are history, superseded ones included: their index is found, and leads to them.
HIDDEN: Final = "---\nsearch:\n  exclude: true\n---\n"
ELSEWHERE: Final = re.compile(r"[a-z]+:|//|#")
# Attributes with files that a browser fetches without a click.
FETCHED: Final = {
    "audio": ("src",),
    "embed": ("src",),
    "iframe": ("src",),
    "img": ("src", "srcset"),
    "link": ("href",),
    "object": ("data",),
    "script": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
}


class BuildError(Exception):
    """The site cannot be built. The text has one line for each cause."""


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def pages() -> list[str]:
    """The pages, as places in this repository, sorted."""
    return _listed("docs/*.md", *TOP)


def _listed(*patterns: str) -> list[str]:
    """Files of the work tree that git has or would add, sorted."""
    names = _git("ls-files", "--cached", "--others", "--exclude-standard", *patterns).splitlines()
    return sorted(name for name in names if (ROOT / name).is_file())


def in_navigation() -> list[str]:
    """The pages that the configuration lists, in its order."""

    def places(entry: Any) -> Iterator[str]:
        match entry:
            case str():
                yield entry
            case dict():
                for each in entry.values():
                    yield from places(each)
            case _:
                for each in entry:
                    yield from places(each)

    return list(places(tomllib.loads((SETTINGS / "zensical.toml").read_text("utf-8"))["project"]["nav"]))


# --- Markdown ---------------------------------------------------------------------------------------------------------


def staged(text: str, page: str, *, known: set[str], source: str) -> str:
    """The page as the generator reads it. `known`: places that the site has; `source`: where the forge shows a file."""
    parts = NOT_CODE.split(text)
    # Of each match: all of it, its indentation, its backticks.
    return "".join(
        _code(part) if number % 4 == 1 else _prose(part, page, known=known, source=source)
        for number, part in enumerate(parts)
        if number % 4 < 2 and part is not None
    )


def _prose(text: str, page: str, *, known: set[str], source: str) -> str:
    text = text.replace("<details>", '<details markdown="1">')

    def moved(match: re.Match[str]) -> str:
        link = match[0]
        if ELSEWHERE.match(link):
            return link
        name, mark, anchor = link.partition("#")
        place = posixpath.normpath(posixpath.join(posixpath.dirname(page), name))
        return link if place in known else f"{source}/{place}{mark}{anchor}"

    return LINK.sub(moved, text)


def _code(text: str) -> str:
    """The forge needs `\\|` for a bar in the code of a table, and shows `|`; the generator needs and shows a bar."""
    return text if "\n" in text else text.replace(r"\|", "|")


def _stage(out: Path, source: str) -> None:
    """Write the pages, and the files that they show, below `out`."""
    shutil.rmtree(out, ignore_errors=True)
    listed = pages()
    pictures = _listed("docs/images", "docs/site")
    known = {*listed, *pictures}
    for name in listed:
        target = out / name
        target.parent.mkdir(parents=True, exist_ok=True)
        text = (ROOT / name).read_text("utf-8")
        hidden = HIDDEN if name.startswith("docs/decisions/0") else ""
        target.write_text(hidden + staged(text, name, known=known, source=source), "utf-8")
    for name in pictures:
        if Path(name).suffix in {".svg", ".png", ".js", ".css"}:
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, out / name)


# --- HTML -------------------------------------------------------------------------------------------------------------


class _Read(HTMLParser):
    """The targets of the links of a page, its anchors, and the files that a browser fetches for it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value for name, value in attrs if value is not None}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag == "link" and found.get("rel") in ("canonical", "prev", "next", "edit"):
            return
        self.fetched += [found[name] for name in FETCHED.get(tag, ()) if name in found]


def broken(site: Path) -> list[str]:
    """One line for each broken link and each absent file of the site."""
    read = {path: _Read(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    wrong = []
    for path, page in read.items():
        if path.name == "404.html":  # for servers, with places that begin at their root
            continue
        for link in [*page.links, *page.fetched]:
            name, _, anchor = unquote(link.partition("?")[0]).partition("#")
            if ELSEWHERE.match(link) and not link.startswith("#"):
                continue
            target = (path.parent / name).resolve() if name else path
            if not target.is_file():
                wrong.append(f"{path.relative_to(site)}: {link} leads to no file")
            elif anchor and target in read and anchor not in read[target].anchors:
                wrong.append(f"{path.relative_to(site)}: {link} leads to no heading")
    return wrong


# Names of XML, which look like places, and the licence of the icons.
NAMES: Final = re.compile(r"http://www\.w3\.org/(?:1998/Math/MathML|1999/xhtml|2000/svg)|https://fontawesome\.com")
URL: Final = re.compile(r"https?://[^\"'`\s)]*")


def without_network(site: Path) -> None:
    """Cut the places from which the theme would load libraries for diagrams and the like, and facts about the forge."""
    for path in site.rglob("*.js"):
        if path.name != "search.js":
            text = path.read_text("utf-8")
            path.write_text(URL.sub(lambda match: match[0] if NAMES.match(match[0]) else "data:,", text), "utf-8")


def foreign(site: Path) -> list[str]:
    """One line for each file that the site would fetch from elsewhere."""
    wrong = []
    for path in sorted(site.rglob("*")):
        if path.suffix == ".html":
            found = [url for url in _Read(path.read_text("utf-8")).fetched if re.match(r"\w+://|//", url)]
        elif path.suffix in (".js", ".css") and path.name != "search.js":  # the text of all pages
            found = [url for url in URL.findall(path.read_text("utf-8")) if not NAMES.match(url)]
        else:
            continue
        wrong += [f"{path.relative_to(site)}: {url}" for url in found]
    return wrong


# --- build ------------------------------------------------------------------------------------------------------------


def generator() -> Path:
    """The generator, installed in its own environment in the versions of the lock."""
    folder, lock = OUT / ".venv", SETTINGS / "requirements.lock"
    program, mark = folder / "bin" / "zensical", folder / "installed.lock"
    if not (program.exists() and mark.exists() and mark.read_bytes() == lock.read_bytes()):
        uv, python = [sys.executable, "-m", "uv"], folder / "bin" / "python"
        for words in (
            ["venv", "--quiet", "--clear", "--python", sys.executable, str(folder)],
            ["pip", "sync", "--quiet", "--python", str(python), str(lock)],
        ):
            done = subprocess.run([*uv, *words], cwd=ROOT, capture_output=True, text=True, check=False)
            if done.returncode:
                raise BuildError(f"the generator cannot be installed from docs/site/requirements.lock:\n{done.stderr}")
        shutil.copyfile(lock, mark)
    return program


def forge() -> str:
    server, name = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_REPOSITORY")
    return f"{server}/{name}" if server and name else FORGE


def build(out: Path) -> Path:
    """Build the site in `out`, and return the folder with `index.html`. Raises: BuildError."""
    program, where, commit = generator(), forge(), _git("rev-parse", "HEAD")
    out.mkdir(parents=True, exist_ok=True)
    site = out / "html"
    shutil.rmtree(site, ignore_errors=True)
    _stage(out / "pages", f"{where}/blob/{commit}")
    places = f'repo_url = "{where}"\nrepo_name = "{commit[:12]}"\nedit_uri = "blob/{commit}/"\n'
    settings = (SETTINGS / "zensical.toml").read_text("utf-8").replace("[project]\n", f"[project]\n{places}", 1)
    (out / "zensical.toml").write_text(settings, "utf-8")
    done = subprocess.run(
        [str(program), "build", "--clean", "--strict"], cwd=out, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BuildError(done.stdout + done.stderr)
    without_network(site)
    wrong = [*broken(site), *(f"{each} is fetched from elsewhere" for each in foreign(site))]
    if wrong:
        raise BuildError("\n".join(wrong))
    return site


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Build the documentation as a site.")
    parser.add_argument("--out", type=Path, default=OUT, help="the folder to build in; its html/ is the site")
    out = parser.parse_args(arguments).out.resolve()
    try:
        site = build(out)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    count = sum(1 for _ in site.rglob("*.html"))
    print(f"wrote {count} pages: open {site / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
