"""Every chip opens its why, every fact tells its age, and every number its size and spread; over a site of made-up runs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from html.parser import HTMLParser

import pytest

from gen.site import pages
from tests.gen import ledger, specimens
from tests.gen.compared import two_sides
from tests.gen.reading import html_of

TODAY = date(2026, 11, 30)
VOID = frozenset({"area", "br", "col", "hr", "img", "input", "link", "meta", "path", "line", "circle", "rect"})
KINDS = ("index.md", "techniques", "services", "devices", "coverage.md", "fleet.md", "runs", "records", "comparisons.md")
# What stands in a cell under one of these titles is the why of the chip in the same row.
WHYS = ("Why", "Effect and words", "In its words", "Measured here", "What it means here")
# Numbers in these are results: of samples, unless the cell says that there are none.
RESULTS = ("Measured", "Measured here", "Brought", "Has to bring")
NOTHING = "not measured|not configured|nothing yet|worked out|counted|no sensor|not applicable|too few|failed|no .* here"
SIZED = re.compile(rf"n = \d|one (repetition|request|run)|in each of \d+|{NOTHING}")


@dataclass(eq=False)
class Node:
    """An element with the text in it and what surrounds it."""

    tag: str
    attributes: dict[str, str]
    parent: Node | None
    children: list[Node] = field(default_factory=list)
    own: list[str] = field(default_factory=list)

    @property
    def classes(self) -> set[str]:
        return set(self.attributes.get("class", "").split())

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.own + [child.text for child in self.children]).split())

    def walk(self) -> Iterator[Node]:
        yield self
        for child in self.children:
            yield from child.walk()

    def up(self, *tags: str) -> Node | None:
        at = self.parent
        while at is not None and at.tag not in tags:
            at = at.parent
        return at


class Tree(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = self.at = Node("html", {}, None)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs}, self.at)
        self.at.children.append(node)
        if tag not in VOID:
            self.at = node

    def handle_endtag(self, tag: str) -> None:
        at: Node | None = self.at
        while at is not None and at.tag != tag:
            at = at.parent
        if at is not None and at.parent is not None:
            self.at = at.parent

    def handle_data(self, data: str) -> None:
        self.at.own.append(data)


def tree(source: str) -> Node:
    parser = Tree()
    parser.feed(html_of(source.split("---\n", 2)[2]))
    parser.close()
    return parser.root


@pytest.fixture(scope="module")
def site() -> dict[str, Node]:
    cited = specimens.micro_run()
    fleet = specimens.small_fleet()
    local = (
        specimens.devices_run(),
        specimens.endpoint_run(),
        specimens.survey_run(fleet),
        specimens.invalid_run(),
        specimens.workload_run(),
        specimens.absent_workload_run(),
        two_sides(minute=50),
    )
    record = ledger.record(body="# Keep\n\nIt is on.\n", evidence=({"id": cited.id, "sha256": cited.content_sha256},))
    corpus = specimens.corpus(fleet=fleet, runs=(cited,), local_runs=local, records=(record,))
    return {path: tree(text) for path, text in pages(corpus, TODAY).items() if path.endswith(".md")}


def label_of(cell: Node) -> str:
    return next((node.text for node in cell.walk() if "label" in node.classes), "")


def explained(chip: Node) -> bool:
    """Tell whether a chip leads to its why or stands in a row, an item or a line with it."""
    if chip.tag == "a":
        return True
    row = chip.up("tr")
    cells = row.children if row is not None else []
    if any(label_of(cell) in WHYS and len(cell.text) > len(label_of(cell)) for cell in cells):
        return True
    around = chip.up("tr", "li", "p", "summary")
    if around is None:
        return False
    # A verdict beside the two numbers that it is about, with their sizes, is explained by them.
    return bool(SIZED.search(around.text)) or any(node.tag == "a" and "href" in node.attributes for node in around.walk())


def introduces(chip: Node) -> bool:
    """Tell whether a chip heads what is its why: the section of a technique's page, or a change with what has moved."""
    box = chip.up("div")
    return box is not None and bool(box.classes & {"summary", "change"})


def test_every_chip_opens_its_why(site: dict[str, Node]) -> None:
    chips = [(path, node) for path, root in site.items() for node in root.walk() if "chip" in node.classes]
    seen = Counter(path.split("/")[0] for path, _ in chips)
    for kind in KINDS:
        assert seen[kind], f"no chip on {kind}: the check has nothing to check"
    bare = [(path, node) for path, node in chips if not explained(node)]
    assert [f"{path}: {node.text}" for path, node in bare if not introduces(node)] == []


def test_the_check_of_chips_finds_one_without_a_why() -> None:
    bare = tree('---\n---\n<p><span class="chip">enabled</span> on all</p>')
    assert [explained(node) for node in bare.walk() if "chip" in node.classes] == [False]


def facts(root: Node) -> Iterator[Node]:
    """Give the rows and items in which something is said to be known in some way."""
    found: dict[int, Node] = {}
    for node in root.walk():
        if "known" in node.classes and (around := node.up("tr", "li")) is not None:
            found[id(around)] = around
    return iter(found.values())


def aged(row: Node) -> bool:
    """Tell whether a row says when something looks stale; a record has a day of its own by which it is looked at again."""
    return any(
        (node.tag == "time" and "data-stale-after" in node.attributes) or "/records/" in node.attributes.get("href", "")
        for node in row.walk()
    )


def in_a_tree(row: Node) -> bool:
    """Tell a question of a decision tree, whose inputs stand with their age in the table below it."""
    at: Node | None = row
    while at is not None and "tree" not in at.classes:
        at = at.parent
    return at is not None


def test_what_is_known_tells_how_old_it_is_and_when_that_is_stale(site: dict[str, Node]) -> None:
    rows = [(path, row) for path, root in site.items() for row in facts(root)]
    assert len(rows) > 100
    assert [f"{path}: {row.text[:120]}" for path, row in rows if not aged(row) and not in_a_tree(row)] == []


def in_contract(cell: Node) -> bool:
    """Tell a side of a comparison over the whole contract, or the result of a run of one side."""
    box = cell.up("div")
    return box is not None and "contract" in box.classes and label_of(cell) in {"Baseline", "Candidate", "Result"}


def numbered(cell: Node) -> str:
    return cell.text.removeprefix(label_of(cell)).strip()


def test_a_result_stands_with_its_size(site: dict[str, Node]) -> None:
    cells = [
        (path, numbered(node))
        for path, root in site.items()
        for node in root.walk()
        if node.tag == "td" and (label_of(node) in RESULTS or in_contract(node)) and re.search(r"\d", numbered(node))
    ]
    assert len(cells) > 20
    assert [f"{path}: {told}" for path, told in cells if not SIZED.search(told)] == []


def anchors(roots: Sequence[Node]) -> Iterator[str]:
    return (node.attributes["id"] for root in roots for node in root.walk() if "id" in node.attributes)


def test_no_page_uses_an_address_twice(site: dict[str, Node]) -> None:
    for path, root in site.items():
        assert [name for name, count in Counter(anchors([root])).items() if count > 1] == [], path


def test_each_technique_of_a_service_has_an_address_of_its_own(site: dict[str, Node]) -> None:
    named = set(anchors([site["services/text.md"]]))
    assert {"technique-kv-cache-management", "technique-speculative-decoding", "techniques", "settings"} <= named
