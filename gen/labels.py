"""Tables that people write, laid out as generated ones are: each cell repeats its column's title, for cards on a phone.

An extension of Python-Markdown, named in mkdocs.yml; a writer of docs/ does nothing for it.
"""

from __future__ import annotations

from xml.etree.ElementTree import Element

from markdown import Markdown  # type: ignore[import-untyped]  # it ships no types
from markdown.extensions import Extension  # type: ignore[import-untyped]
from markdown.treeprocessors import Treeprocessor  # type: ignore[import-untyped]

# After the cells have become elements (20 for what stands inline), before the tree is written out.
_PRIORITY = 5
_GENERATED = "table"
# A name and what it means need no title between them.
_PAIR = 2


class _Labels(Treeprocessor):  # type: ignore[misc]
    """Wrap each bare table and label its cells; what the generator wrote has both."""

    def run(self, root: Element) -> None:
        for parent in list(root.iter()):
            if _GENERATED in parent.get("class", "").split():
                continue
            for place, child in enumerate(list(parent)):
                if child.tag == "table":
                    _label(child)
                    parent[place] = _wrapped(child)


class LabelledTables(Extension):  # type: ignore[misc]
    """Lay out hand-written tables as cards on narrow screens."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 (the library's name)
        md.treeprocessors.register(_Labels(md), "labelled-tables", _PRIORITY)


def makeExtension() -> LabelledTables:  # noqa: N802 (the library's name)
    """Give mkdocs the extension."""
    return LabelledTables()


def _label(table: Element) -> None:
    titles = ["".join(cell.itertext()) for cell in table.iter("th")]
    for row in table.iter("tr"):
        for title, cell in zip(titles, row.findall("td"), strict=False):
            if title.strip() and len(titles) > _PAIR:
                label = Element("span", {"class": "label"})
                label.text, label.tail, cell.text = title, f" {cell.text or ''}", None
                cell.insert(0, label)


def _wrapped(table: Element) -> Element:
    pair = len(list(table.iter("th"))) == _PAIR
    box = Element("div", {"class": "table cards pair-of-columns" if pair else "table cards"})
    box.tail, table.tail = table.tail, None
    box.append(table)
    return box
