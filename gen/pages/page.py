"""A page before it is bytes: where it lies, what it is called, what it says."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass

from gen.markdown import NOTHING, Markdown, line, link, paragraphs, span, text, visible
from gen.paths import relative

# What a search shows first where pages say its words alike: what was decided and why, then what it is about.
WEIGHTS = {"techniques": 8, "rules.md": 3, "services": 3, "devices": 3, "records": 0.8, "checklists": 0.3}


@dataclass(frozen=True, kw_only=True)
class Page:
    """`trail` leads from the first page down to this one's parent.

    `words` are those that a reader types to come here and nowhere else; a search puts their page first.
    `siblings` shows the side bar with the pages beside this one, `contents` the list of its sections;
    without them the body has their room.
    """

    path: str
    title: str
    body: Markdown
    trail: tuple[tuple[str, str], ...] = ()
    description: str = ""
    words: tuple[str, ...] = ()
    siblings: bool = False
    contents: bool = True

    def render(self) -> str:
        """Write the file: always our own front matter first, so that no quoted text can be read as one."""
        # The theme puts titles into HTML as they are.
        front = [f"title: {json.dumps(html.escape(visible(self.title)), ensure_ascii=False)}"]
        if self.description:
            front.append(f"description: {json.dumps(html.escape(visible(self.description)), ensure_ascii=False)}")
        hidden = [name for name, shown in (("navigation", self.siblings), ("toc", self.contents)) if not shown]
        if hidden:
            front.append(f"hide: [{', '.join(hidden)}]")
        if weight := WEIGHTS.get(self.path.partition("/")[0]):
            front.append(f"search: {{boost: {weight}}}")
        if self.words:
            front.append(f"tags: {json.dumps([html.escape(visible(word)) for word in self.words], ensure_ascii=False)}")
        head = "\n".join(["---", *front, "---"])
        return f"{head}\n\n{paragraphs(self._crumbs(), Markdown(f'# {text(self.title)}'), self.body)}"

    def _crumbs(self) -> Markdown:
        if not self.trail:
            return NOTHING
        links = (link(text(label), relative(path, self.path)) for label, path in self.trail)
        return span(line(*links, by=" › "), "crumbs")
