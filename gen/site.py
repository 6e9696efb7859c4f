"""The whole site as a mapping from path to content: Markdown pages and raw files, nothing written."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from gen import paths
from gen.album import Album, kept_in
from gen.corpus import Corpus
from gen.pages import (
    age,
    checklist,
    claims,
    comparisons,
    controls,
    coverage,
    device,
    feed,
    fleet,
    front,
    machine,
    past,
    planners,
    records,
    rules,
    run,
    service,
    sources,
    technique,
)
from gen.pages.atlas import Atlas
from gen.pages.page import Page
from probes.errors import InputError

_KINDS = (
    front,
    coverage,
    fleet,
    technique,
    service,
    checklist,
    device,
    machine,
    run,
    comparisons,
    records,
    past,
    rules,
    controls,
    age,
    planners,
    claims,
    sources,
)


def pages(corpus: Corpus, today: date, charts: Album | None = None) -> dict[str, str]:
    """Give every generated page and file of the site, in an order that does not depend on the machine.

    `charts` holds those that were rendered before: it saves time and changes no byte.

    Raises:
        InputError: the corpus holds damaged files, or two pages would lie in one place.
    """
    if corpus.problems:
        raise InputError(corpus.problems)
    atlas = Atlas(corpus=corpus, today=today)
    with kept_in(charts):
        written = [(page.path, page.render()) for page in _pages(atlas)]
    written += feed.files(atlas)
    paths.check(path for path, _ in written)
    return dict(sorted(written))


def _pages(atlas: Atlas) -> Iterator[Page]:
    for kind in _KINDS:
        yield from kind.pages(atlas)
