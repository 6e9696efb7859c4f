"""Where pages live: safe names from any text, links between pages, and no two pages in one place."""

from __future__ import annotations

import functools
import hashlib
import posixpath
import re
from collections import Counter
from collections.abc import Iterable

from probes.errors import InputError, Problem
from probes.evidence import slug

# Names that Windows gives to devices, whatever the extension.
_RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))}
SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SAFE = re.compile(rf"{SAFE_NAME.pattern}(/{SAFE_NAME.pattern})*")


def names(texts: Iterable[str]) -> dict[str, str]:
    """Give every text a file name; those that would share one also carry a short hash of the text."""
    unique = sorted(set(texts))
    slugs = {value: slug(value) for value in unique}
    shared = Counter(slugs.values())
    return {
        value: f"{name}-{hashlib.sha256(value.encode('utf-8', 'replace')).hexdigest()[:8]}"
        if shared[name] > 1 or name in _RESERVED or name == "index"
        else name
        for value, name in slugs.items()
    }


def evidence_file(run_id: str) -> str:
    """Place a run's file under the name it has in the repository, where that name is safe for a site."""
    return f"evidence/{run_id if SAFE_NAME.fullmatch(run_id) else names([run_id])[run_id]}.json"


@functools.lru_cache(maxsize=2**16)
def relative(target: str, here: str) -> str:
    """Write the link from the page `here` to `target`, which may end in an anchor."""
    path, _, anchor = target.partition("#")
    if path == here and anchor:
        return f"#{anchor}"
    return posixpath.relpath(path, posixpath.dirname(here) or ".") + (f"#{anchor}" if anchor else "")


def destination(path: str) -> str:
    """Name the file that a source becomes, as a disk that ignores case sees it."""
    folder, name = posixpath.split(path.lower())
    stem, extension = posixpath.splitext(name)
    if extension != ".md":
        return path.lower()
    # A folder's page is the folder's address too: x.md and x/index.md would answer to one name.
    place = folder if stem in {"index", "readme"} else posixpath.join(folder, stem)
    return f"{place or 'index'}.html"


def check(paths: Iterable[str]) -> None:
    """Refuse names that leave the site's folder and pages that would replace one another.

    Raises:
        InputError: with every such path.
    """
    problems: list[Problem] = []
    seen: dict[str, str] = {}
    for path in paths:
        if not _SAFE.fullmatch(path):
            expected = "a relative path of letters, digits and ._- inside the site"
            problems.append(Problem(place=f"page {path!r}", found="is not a safe path", expected=expected))
        place = destination(path)
        if place in seen:
            problems.append(
                Problem(place=f"page {path}", found=f"would replace {seen[place]}", expected="one page per address")
            )
        seen[place] = path
    if problems:
        raise InputError(problems)
