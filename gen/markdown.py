"""Markdown that says what it was given: escaping, and the few inline and block forms that pages use."""

from __future__ import annotations

import functools
import html
import re
from collections.abc import Iterable, Mapping
from typing import NewType
from urllib.parse import urlsplit

Markdown = NewType("Markdown", str)
"""Text that is safe to put on a page. Only this module makes it out of a plain string."""

NO_TEXT = Markdown("<em>(no text)</em>")

# Every character that HTML or Markdown reads anywhere in a line becomes a character reference, in one
# pass: no order of escaping can then let a backslash hide a pipe, and a pipe never ends a cell.
_SPECIAL = {ord(c): f"&#{ord(c)};" for c in "\\`*_{}[]()#|~^=$@!<>&\"'"}
# A control character or a change of writing direction is shown, so that no text can hide a part of itself.
_INVISIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_LINE_START = re.compile(r"^(\d*)([-+:.])")
_BREAK = re.compile(r"\r\n|\r|\n")


def visible(value: str) -> str:
    """Replace characters that would not be seen by their code point in angle brackets."""
    printable = value.encode("utf-8", "replace").decode("utf-8")
    return _INVISIBLE.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", printable)


@functools.lru_cache(maxsize=2**16)
def text(value: str) -> Markdown:
    """Escape any text for one line of Markdown; line breaks stay visible as such."""
    lines = [visible(line).strip() for line in _BREAK.split(value)]
    return Markdown("<br>".join(_escape(line) for line in lines)) if any(lines) else NO_TEXT


def code(value: str) -> Markdown:
    """Show any text in fixed width within a line."""
    return Markdown(f"<code>{text(value)}</code>") if value.strip() else NO_TEXT


def fenced(value: str, language: str = "text") -> Markdown:
    """Show any text as a block, in a fence longer than every run of backticks inside it."""
    body = "\n".join(visible(line) for line in _BREAK.split(value))
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", body)), default=0))
    return Markdown(f"{fence}{language}\n{body}\n{fence}\n")


def link(label: Markdown, target: str, *classes: str) -> Markdown:
    """Link to a page of this site; `target` is a relative path made by the generator."""
    if not re.fullmatch(r"[A-Za-z0-9./_#-]+", target):
        raise ValueError(f"a relative path of letters, digits and ./_#-, not {target!r}")
    return Markdown(f"[{label}]({target})" + (f"{{ {' '.join(f'.{c}' for c in classes)} }}" if classes else ""))


def external(label: Markdown, url: str) -> Markdown:
    """Link to another site over http(s); any other address stays text."""
    try:
        parts = urlsplit(url)
        safe = parts.scheme in {"http", "https"} and bool(parts.hostname) and url.isprintable() and " " not in url
    except ValueError:
        safe = False
    if not safe:
        return label if label == text(url) else Markdown(f"{label} ({text(url)})")
    return Markdown(f'<a href="{url.translate(_SPECIAL)}" rel="noopener noreferrer">{label}</a>')


def span(label: Markdown, *classes: str, title: str = "") -> Markdown:
    """Mark a part of a line for the style sheet."""
    tip = f' title="{_attribute(title)}"' if title else ""
    return Markdown(f'<span class="{" ".join(classes)}"{tip}>{label}</span>')


def sifted(label: Markdown, *, sort: str = "", facet: str = "") -> Markdown:
    """Tell the script that sorts and filters tables what a cell counts as, where its words do not say it."""
    marks = {name: value for name, value in (("sort", sort), ("facet", facet)) if value}
    return Markdown(f"<span{_data(marks)}>{label}</span>") if marks else label


def anchor(name: str) -> Markdown:
    """Put a target for links into a line."""
    return Markdown(f'<span id="{_attribute(name)}"></span>')


def block(body: Markdown, *classes: str, tag: str = "div", **data: str) -> Markdown:
    """Wrap blocks in an element whose content is still Markdown; `data` is what scripts read of it."""
    return Markdown(f'<{tag} class="{" ".join(classes)}"{_data(data)} markdown="1">\n\n{body.strip()}\n\n</{tag}>\n')


def details(summary: Markdown, body: Markdown, *classes: str, searched: bool = True) -> Markdown:
    """Fold blocks under one line; they open without a script. The line itself holds no link: it is what is pressed.

    What nobody would search for by its words, such as rows of samples, stays out of the index of the search.
    """
    if "](" in summary or "<a " in summary:
        raise ValueError(f"a summary without links: {summary!r}")
    kind = f' class="{" ".join(classes)}"' if classes else ""
    kind += "" if searched else " data-search-exclude"
    return Markdown(f'<details{kind} markdown="1">\n<summary>{summary}</summary>\n\n{body.strip()}\n\n</details>\n')


def heading(level: int, label: Markdown, name: str) -> Markdown:
    """Write a heading with an anchor that does not depend on its words."""
    return Markdown(f"{'#' * level} {label} {{ #{name} }}\n")


def bullets(items: Iterable[Markdown]) -> Markdown:
    """Write a list."""
    return Markdown("".join(f"- {item}\n" for item in items))


def paragraphs(*parts: Markdown) -> Markdown:
    """Join blocks, leaving out the empty ones."""
    return Markdown("\n\n".join(part.strip("\n") for part in parts if part) + "\n")


def line(*parts: Markdown, by: str = " ") -> Markdown:
    """Join parts of one line, leaving out the empty ones."""
    return Markdown(by.join(part for part in parts if part))


def sentence(value: str) -> Markdown:
    """Escape text and give it a full stop where it has no end of its own."""
    done = value.rstrip()
    return text(done if not done or done[-1] in ".!?…:" else done + ".")


NOTHING = Markdown("")


def _escape(value: str) -> str:
    escaped = value.translate(_SPECIAL)
    # What begins a list, a definition or a rule does so only as the first character of a line.
    return _LINE_START.sub(lambda match: f"{match[1]}&#{ord(match[2])};", escaped)


def _data(values: Mapping[str, str]) -> str:
    return "".join(f' data-{name.replace("_", "-")}="{_attribute(value)}"' for name, value in values.items())


def _attribute(value: str) -> str:
    return html.escape(visible(value), quote=True).translate({ord(c): f"&#{ord(c)};" for c in "\\`*_{}[]()|\r\n"})
