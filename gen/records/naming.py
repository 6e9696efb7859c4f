"""How a record gets its file name: date, then what it is about; never a counter."""

from __future__ import annotations

import unicodedata
from datetime import date

from probes.evidence import Technique, slug


def record_name(day: date, technique: Technique, scope: str) -> str:
    """Name a record about a technique, the same on every machine."""
    return f"{day.isoformat()}-{technique.value}-{slug(scope)}"


def titled_name(day: date, title: str) -> str:
    """Name a record by its title: accents are dropped, and a title without ASCII letters gives a hash."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    return f"{day.isoformat()}-{slug(plain if any(c.isalnum() for c in plain) else title)}"


def distinct_name(name: str, digest: str) -> str:
    """Name a record whose plain name is taken by other content: by its own content, so that branches agree."""
    return f"{name}-{digest[:8]}"
