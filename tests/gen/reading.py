"""Reads pages back as a browser would: Markdown with the site's own extensions, then the text that is seen."""

from __future__ import annotations

from html.parser import HTMLParser

import markdown as python_markdown  # type: ignore[import-untyped]

EXTENSIONS = ["attr_list", "md_in_html", "tables", "toc", "pymdownx.highlight", "pymdownx.superfences"]
SETTINGS = {"tables": {"use_align_attribute": True}}
VOID = {"br", "img", "hr", "input", "meta", "link", "path", "line"}


def html_of(source: str) -> str:
    """Render Markdown as the site does."""
    return str(python_markdown.markdown(source, extensions=EXTENSIONS, extension_configs=SETTINGS))


class Reader(HTMLParser):
    """Collects text, tags, attributes and table rows."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.rows: list[list[str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag == "br":
            self._add("\n")
        elif tag == "tr":
            self.rows.append([])
        elif tag in {"td", "th"}:
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        self._add(data)

    def _add(self, data: str) -> None:
        self.text += data
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def read(source: str) -> Reader:
    """Render Markdown and read it."""
    reader = Reader()
    reader.feed(html_of(source))
    reader.close()
    return reader
