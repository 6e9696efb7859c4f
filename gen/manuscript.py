"""A body that a person wrote, made fit for the site: read as CommonMark, written as our own Markdown."""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote, unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from gen import paths
from gen.album import written
from gen.markdown import NO_TEXT, Markdown, code, external, fenced, heading, line, link, text
from gen.tables import Column, Layout, table

SitePath = Callable[[str], str | None]

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_FOLD = re.compile(r"</?(?:details|summary)>", re.IGNORECASE)
_INDENT = "    "
# No text that was escaped holds this character: `gen.markdown.visible` spells it out.
_MARK = "\x01"
_TARGET = re.compile(f"{_MARK}(?P<place>[^{_MARK}]*){_MARK}(?P<anchor>[^{_MARK}]*){_MARK}(?P<label>[^{_MARK}]*){_MARK}")


def published(body: str, folder: str, site_path: SitePath, here: str) -> Markdown:
    """Write a body anew for the page `here`.

    What the review shows is what CommonMark makes of the text, so that is what decides here, too; the
    site's own renderer reads some texts differently. Links inside the repository lead to the pages that
    show their targets, or become text; only http(s) leaves the site; HTML and images stay text. The
    first heading is left out, for the page has one.
    """
    anywhere = written(f"manuscript\n{folder}\n{body}", lambda: _written(body, folder))

    def led(found: re.Match[str]) -> str:
        place = site_path(unquote(found["place"]))
        label = Markdown(found["label"])
        return label if place is None else link(label, paths.relative(f"{place}{found['anchor']}", here))

    return Markdown(_TARGET.sub(led, anywhere))


def _written(body: str, folder: str) -> str:
    """Write a body for any page: links inside the repository name what they lead to."""
    root = SyntaxTreeNode(_commonmark().parse(body))
    blocks = list(root.children)
    if blocks and blocks[0].type == "heading" and blocks[0].tag == "h1":
        blocks = blocks[1:]
    return "\n\n".join(_Writer(folder=folder).blocks(blocks))


@functools.cache
def _commonmark() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


@dataclass(kw_only=True)
class _Writer:
    """Writes one tree; it remembers anchors, for a page may repeat a heading."""

    folder: str
    anchors: dict[str, int] = field(default_factory=dict)

    def blocks(self, nodes: Sequence[SyntaxTreeNode]) -> Iterator[str]:
        for node in nodes:
            written = self._block(node)
            if written.strip():
                yield written.rstrip("\n")

    def _block(self, node: SyntaxTreeNode) -> str:  # noqa: PLR0911 (one form for each kind of block)
        match node.type:
            case "heading":
                # The page has one title, its own.
                return heading(max(2, int(node.tag[1])), self._inline(node.children), self._anchor(_plain(node)))
            case "paragraph":
                return self._inline(node.children)
            case "fence" | "code_block":
                # The language is a class name in the page.
                language = re.sub(r"[^a-z0-9+-]", "", node.info.split()[0].lower()) if node.info.split() else ""
                return fenced(node.content.rstrip("\n"), language or "text")
            case "bullet_list" | "ordered_list":
                return self._list(node)
            case "blockquote":
                return "\n".join(f"> {row}".rstrip() for row in "\n\n".join(self.blocks(node.children)).split("\n"))
            case "table":
                return self._table(node)
            case "html_block":
                shown = _FOLD.sub("", _COMMENT.sub("", node.content)).strip()
                return text(shown) if shown else ""
            case _:
                # Only the rule between sections is left, and sections have headings here.
                return ""

    def _list(self, node: SyntaxTreeNode) -> str:
        items = []
        for number, item in enumerate(node.children, start=1):
            mark = f"{number}." if node.type == "ordered_list" else "-"
            rows = "\n\n".join(self.blocks(item.children)).split("\n")
            body = [f"{mark:<4}{rows[0] or NO_TEXT}", *(f"{_INDENT}{row}" if row else "" for row in rows[1:])]
            items.append("\n".join(body))
        return "\n".join(items)

    def _table(self, node: SyntaxTreeNode) -> str:
        rows = [[self._inline(cell.children) for cell in row.children] for part in node.children for row in part.children]
        head = [Column(title=title) for title in rows[0]]
        return table(head, rows[1:], Layout.CARDS, "written") if len(rows) > 1 else str(line(*rows[0], by=", "))

    def _inline(self, nodes: Sequence[SyntaxTreeNode]) -> Markdown:
        written = "".join(self._span(node) for node in nodes)
        return Markdown(written.strip() or NO_TEXT)

    def _span(self, node: SyntaxTreeNode) -> str:  # noqa: PLR0911 (one form for each kind of inline)
        match node.type:
            case "inline":
                return "".join(self._span(child) for child in node.children)
            case "text":
                return _spaced(node.content)
            case "softbreak":
                return " "
            case "hardbreak":
                return "<br>"
            case "code_inline":
                return code(node.content)
            case "em" | "strong":
                return f"<{node.type}>{self._inline(node.children)}</{node.type}>"
            case "link":
                return self._link(node)
            case "html_inline":
                return "" if _COMMENT.fullmatch(node.content) else text(node.content)
            case _:
                return text(node.content)

    def _link(self, node: SyntaxTreeNode) -> str:
        label, target = self._inline(node.children), str(node.attrs.get("href", ""))
        parts = urlsplit(target)
        if parts.scheme or parts.netloc:
            return external(label, target) if parts.scheme in {"http", "https"} else label
        if not parts.path:
            return link(label, f"#{parts.fragment}") if re.fullmatch(r"[A-Za-z0-9_-]+", parts.fragment) else label
        place = posixpath.normpath(posixpath.join(self.folder, unquote(parts.path)))
        keeps = parts.path.endswith(".md") and re.fullmatch(r"[A-Za-z0-9_-]+", parts.fragment)
        anchor = f"#{parts.fragment}" if keeps else ""
        return f"{_MARK}{quote(place, errors='replace')}{_MARK}{anchor}{_MARK}{label}{_MARK}"

    def _anchor(self, title: str) -> str:
        """Name a heading as GitHub does, so that links into a record work in both places."""
        name = re.sub(r"[^a-z0-9_ -]", "", title.lower()).strip().replace(" ", "-") or "section"
        count = self.anchors.get(name, 0)
        self.anchors[name] = count + 1
        return f"{name}-{count}" if count else name


def _plain(node: SyntaxTreeNode) -> str:
    return "".join(part.content for part in node.walk() if part.type in {"text", "code_inline"})


def _spaced(value: str) -> str:
    """Escape a part of a line and keep the blanks that join it to its neighbours."""
    if not value.strip():
        return " " if value else ""
    return f"{' ' * value[0].isspace()}{text(value)}{' ' * value[-1].isspace()}"
