"""What one side of a contract run is: a service of the inventory, an address, or a setting of the embedded engine."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import urlsplit

from probes.endpoints.address import parse_address
from probes.endpoints.embedded.settings import parse_settings, read_settings
from probes.errors import UsageError
from probes.evidence import Scalar
from probes.fleet import Fleet
from probes.plan import EMBEDDED

EXPECTED = f"a service of fleet.yml, an address such as http://127.0.0.1:8000/v3, or {EMBEDDED}[:NAME=VALUE,...]"


class SideKind(StrEnum):
    """Where a side comes from."""

    SERVICE = "service"
    ADDRESS = "address"
    EMBEDDED = "embedded"


@dataclass(frozen=True, kw_only=True)
class Side:
    """One side as it was named. `settings` are all that an embedded side is started with, `name` goes into file names."""

    word: str
    kind: SideKind
    name: str
    settings: Mapping[str, Scalar] = field(default_factory=dict)


def read_side(word: str, fleet: Fleet | None) -> Side:
    """Read what a side is from its word.

    Raises:
        UsageError: it names nothing, or more than one thing; or a setting that the embedded service does not have.
        InputError: an address that cannot be used as written.
    """
    services = fleet.services if fleet is not None else {}
    head, colon, rest = word.partition(":")
    if head == EMBEDDED:
        if EMBEDDED in services and not colon:
            raise UsageError(f"{word}: is both a service of fleet.yml and the embedded engine; expected another name there")
        return Side(word=word, kind=SideKind.EMBEDDED, name=EMBEDDED, settings=_settings(word, rest if colon else None, fleet))
    if word in services:
        if services[word].url is None:
            raise UsageError(f"{word}: has no 'url' in fleet.yml; expected a service with an address to ask")
        return Side(word=word, kind=SideKind.SERVICE, name=word)
    if "://" in word:
        address = parse_address(word, word.partition("?")[0].rpartition("@")[2])
        return Side(word=word, kind=SideKind.ADDRESS, name=urlsplit(address.root).netloc)
    close = difflib.get_close_matches(word, [EMBEDDED, *services], n=1)
    hint = f"; did you mean {close[0]}?" if close else "."
    where = "" if services else " (there is no inventory here)"
    raise UsageError(f"{word}: is not a side{where}{hint} Expected {EXPECTED}")


def _settings(word: str, given: str | None, fleet: Fleet | None) -> dict[str, Scalar]:
    """Lay the settings of a word over those of the inventory."""
    declared = dict(fleet.embedded.settings) if fleet is not None else {}
    if given is None:
        return declared
    if not given.strip():
        raise UsageError(f"{word}: names no setting; expected {EMBEDDED}, or {EMBEDDED}:NAME=VALUE such as cache_size=2")
    try:
        settings = declared | parse_settings([part.strip() for part in given.split(",")])
        read_settings(settings)
    except UsageError as exc:
        raise UsageError("\n".join(f"{word}: {line.removeprefix('--')}" for line in str(exc).split("\n"))) from exc
    return settings
