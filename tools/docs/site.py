"""The site: every page of the repository as HTML at the same path, with the pictures and files it links to."""

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tools.docs import performance, reference

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "deploy/README.md", "newsfragments/README.md")
STYLE = Path(__file__).with_name("site.css")

_NOT_IN_A_NAME = re.compile(r"[^\w\- ]")
_markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


@dataclass(slots=True, kw_only=True)
class Page:
    """One page: its path in the repository (a generated page has one too) and its Markdown."""

    path: Path
    text: str
    tokens: list[Token] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tokens = _markdown.parse(self.text)
        for heading, inline in zip(self.tokens, self.tokens[1:], strict=False):
            if heading.type == "heading_open":
                heading.attrSet("id", slug(inline.content))

    @property
    def place(self) -> Path:
        return place(self.path)

    @property
    def title(self) -> str:
        return next((inline.content for inline in self.tokens if inline.type == "inline"), self.path.stem)

    @property
    def anchors(self) -> set[str]:
        return {str(token.attrGet("id")) for token in self.tokens if token.type == "heading_open"}

    def links(self) -> Iterator[tuple[Token, str]]:
        """The links and images of the page, each with the attribute that holds its target."""
        for token in self.tokens:
            for child in token.children or ():
                if child.type == "link_open":
                    yield child, "href"
                elif child.type == "image":
                    yield child, "src"


def place(path: Path) -> Path:
    """The path of a page in the site."""
    return Path("index.html") if path == Path("README.md") else path.with_suffix(".html")


def pages() -> list[Page]:
    """All pages: the written ones, and those generated from code and benchmark results."""
    written = [Path(name) for name in SOURCES]
    written += sorted(path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md"))
    made = {**reference.pages(), **performance.pages()}
    return [
        *(Page(path=path, text=(ROOT / path).read_text(encoding="utf-8")) for path in written),
        *(Page(path=Path("docs") / name, text=text) for name, text in made.items()),
    ]


def build(into: Path) -> list[str]:
    """Writes the site; returns its dead links."""
    found = {page.path: page for page in pages()}
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    faults = [fault for page in found.values() for fault in resolve(page, found, into)]
    shutil.copyfile(STYLE, into / "site.css")
    for page in found.values():
        target = into / page.place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(render(page, found), encoding="utf-8")
    return faults


def resolve(page: Page, found: dict[Path, Page], into: Path) -> Iterator[str]:
    """Rewrites links between pages to links of the site, copies linked files, and yields dead links."""
    for token, name in page.links():
        link = urlsplit(str(token.attrGet(name)))
        if link.scheme or link.netloc:
            continue
        target = Path(os.path.normpath(page.path.parent / unquote(link.path))) if link.path else page.path
        if target not in found and (ROOT / target).is_dir() and target / "README.md" in found:
            target = target / "README.md"
        if target in found:
            if link.fragment and link.fragment not in found[target].anchors:
                yield f"{page.path} links to {token.attrGet(name)}, but that page has no such heading"
            href = os.path.relpath(found[target].place, page.place.parent)
            token.attrSet(name, f"{href}#{link.fragment}" if link.fragment else href)
        elif (ROOT / target).exists():
            _copy(target, into)
            token.attrSet(name, os.path.relpath(target, page.place.parent))
        else:
            yield f"{page.path} links to {token.attrGet(name)}, which does not exist"


def _copy(path: Path, into: Path) -> None:
    (into / path).parent.mkdir(parents=True, exist_ok=True)
    if (ROOT / path).is_dir():
        leftover = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / path, into / path, dirs_exist_ok=True, ignore=leftover)
    else:
        shutil.copyfile(ROOT / path, into / path)


def render(page: Page, found: dict[Path, Page]) -> str:
    up = os.path.relpath(".", page.place.parent)
    content = _markdown.renderer.render(page.tokens, _markdown.options, {})
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(page.title)} · Tape</title>\n"
        f'<link rel="stylesheet" href="{up}/site.css"></head>\n<body>\n'
        f'<nav aria-label="Pages"><a class="home" href="{up}/index.html">Tape</a>\n{menu(page, found)}</nav>\n'
        f"<main>\n{content}</main>\n</body></html>\n"
    )


def menu(page: Page, found: dict[Path, Page]) -> str:
    """The navigation: pages in groups, with the current page marked."""
    groups: dict[str, list[Page]] = {}
    for each in found.values():
        groups.setdefault(group(each.path), []).append(each)
    lists = []
    for name, members in groups.items():
        items = "".join(f"<li>{_entry(each, page)}</li>" for each in members)
        is_open = " open" if page in members or name == "Documentation" else ""
        lists.append(f"<details{is_open}><summary>{name}</summary><ul>{items}</ul></details>\n")
    return "".join(lists)


def group(path: Path) -> str:
    """The navigation group of a page, by its folder."""
    if not path.is_relative_to("docs"):
        return "Project"
    folder = path.parts[1] if len(path.parts) > 2 else ""
    return {"": "Documentation", "adr": "Decisions", "how-to": "How to"}.get(folder, folder.capitalize())


def _entry(page: Page, current: Page) -> str:
    here = ' aria-current="page"' if page is current else ""
    return f'<a href="{os.path.relpath(page.place, current.place.parent)}"{here}>{escape(page.title)}</a>'


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return _NOT_IN_A_NAME.sub("", heading.strip().lower()).replace(" ", "-")
