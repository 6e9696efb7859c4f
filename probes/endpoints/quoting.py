"""What may be kept of an endpoint's words: keys and addresses taken out, broken text mended, long text cut."""

from __future__ import annotations

import hashlib
import math
import re
from typing import Final
from urllib.parse import quote

from pydantic import JsonValue

from probes.endpoints.address import Address
from probes.load.untrusted import one_line, well_formed
from probes.redaction import Redactor

LINE_CHARACTERS: Final = 300
TEXT_CHARACTERS: Final = 2000
ITEMS: Final = 40
DEPTH: Final = 8
SECRET_CHARACTERS: Final = 6
_READ_CHARACTERS = 12000
_LONGEST_SECRET = 4000
# Folders of the machine that serves; paths of an API begin otherwise.
_FOLDERS = re.compile(
    r"(?<![\w/.:~])(?:"
    r"(?:file://)?/(?:home|root|srv|mnt|media|opt|data|models?|tmp|var|usr|Users|workspace|volumes?)|(?:file:///)?[A-Za-z]:"
    r"|~(?:[A-Za-z_][\w.-]*)?|\.{1,2}(?:[/\\]\.{1,2})*[/\\][^/\\\s\"'<>|.][^/\\\s\"'<>|]*"
    r")(?:[/\\][^/\\\s\"'<>|]+)*[/\\](?=[^/\\\s])",
    re.IGNORECASE,
)
# An id that begins so is a path, whatever its folders are called.
_PATH = re.compile(r"[/\\~]|\.{1,2}[/\\]|[A-Za-z]:[/\\]|file:")


class Quoter:
    """Quotes one service. Text is redacted before it is cut, or half a key could stay."""

    def __init__(self, redactor: Redactor, *, key: str | None, address: Address, shown: str) -> None:
        """`shown` stands for the address, so that a host named in an environment variable stays there."""
        self._redactor = redactor
        self._address = Redactor(paths={} if address.root in shown else dict.fromkeys(address.names, shown))
        self._key = _spellings(key)

    def line(self, text: str, limit: int = LINE_CHARACTERS) -> str:
        """Quote text as one line."""
        return _cut("".join(filter(str.isprintable, one_line(self._redacted(text)))), limit)

    def text(self, text: str, limit: int = TEXT_CHARACTERS) -> str:
        """Quote text with its line breaks."""
        kept = "".join(c for c in self._redacted(text) if c.isprintable() or c in "\n\t")
        return _cut(kept, limit)

    def model(self, id: str) -> str:
        """Quote a model id; one that is a path loses its folders and keeps apart from others of its name."""
        *folders, name = re.split(r"[/\\]+", id.rstrip("/\\"))
        if not _PATH.match(id) or not set(folders) - {"", ".", "..", "file:"}:
            return self.line(id)
        return f"{self.line(f'…/{name}')} (path {hashlib.sha256(id.encode('utf-8', 'replace')).hexdigest()[:8]})"

    def json(self, value: JsonValue, depth: int = DEPTH) -> JsonValue:
        """Quote JSON: numbers that are none become null, long strings and lists are cut, deep ones left out."""
        if isinstance(value, list | dict):
            return self._nested(value, depth - 1) if depth else "…"
        if isinstance(value, str):
            return self.text(value, LINE_CHARACTERS)
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        # Longer integers than that are read back by few JSON parsers.
        return str(value) if isinstance(value, int) and abs(value) >= 2**63 else value

    def _nested(self, value: list[JsonValue] | dict[str, JsonValue], depth: int) -> JsonValue:
        left_out = len(value) - ITEMS
        if isinstance(value, list):
            return [self.json(item, depth) for item in value[:ITEMS]] + ([f"… {left_out} more"] if left_out > 0 else [])
        kept = {self.line(key, 80): self.json(item, depth) for key, item in list(value.items())[:ITEMS]}
        return kept | ({"…": f"{left_out} more"} if left_out > 0 else {})

    def _redacted(self, text: str) -> str:
        if len(text) > _READ_CHARACTERS:
            # Without the last piece, no key can be cut in two.
            text = text[: _READ_CHARACTERS - _LONGEST_SECRET]
        text = well_formed(text)
        if self._key is not None:
            text = self._key.sub("[redacted]", text)
        return _FOLDERS.sub("…/", self._redactor.text(self._address.text(text)))


def _spellings(key: str | None) -> re.Pattern[str] | None:
    """Match a key as servers repeat it: in lower case, in URLs, in JSON. Placeholders such as 'none' are no secrets."""
    if key is None or len(key) < SECRET_CHARACTERS:
        return None
    spellings = sorted({key, quote(key, safe=""), key.replace("/", r"\/")}, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, spellings)), re.IGNORECASE)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
