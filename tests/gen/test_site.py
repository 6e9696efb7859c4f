"""The site as a whole: the same inputs give the same pages, whatever they say, and a broken input gives none.

Refresh the golden files after a wanted change: pytest tests/gen/test_site.py --refresh-golden
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from types import MappingProxyType

import pytest

from gen.corpus import Corpus
from gen.pages.feed import document
from gen.paths import relative
from gen.records import Record
from gen.site import pages
from gen.words import Status
from probes.archive import content_hash, seal
from probes.errors import InputError, Problem
from probes.evidence import Run, RunKind, Validity
from tests.gen import ledger, specimens
from tests.gen.reading import Reader, read

TODAY = date(2026, 11, 30)
GOLDEN = Path(__file__).parent / "golden"
COMPARED = (
    "coverage.md",
    "devices/b60.md",
    "devices/local-abc123abc123-cpu.md",
    "fleet.md",
    "records/2026-07-10-automatic-prefix-caching-fleet.md",
    "records/index.md",
    "runs/20261128t090000z-bench-devices-cpu.md",
    "runs/20261128t091000z-bench-endpoint-embedded.md",
    "runs/20261128t092000z-bench-micro-prefix-caching.md",
    "runs/20261128t093000z-bench-survey-fleet.md",
    "runs/index.md",
)
BODY = """# Automatic prefix caching on the fleet: keep

## Context

It is on. See [the run](evidence/20261128T092000Z-bench-micro-prefix-caching.json) and [the contract](../docs/contract.md).
"""


def small() -> Corpus:
    """A fleet of two services, one machine, one accepted record that cites a run."""
    fleet = specimens.small_fleet()
    cited = specimens.micro_run()
    local = (specimens.devices_run(), specimens.endpoint_run(), specimens.survey_run(fleet), specimens.invalid_run())
    record = ledger.record(body=BODY, evidence=({"id": cited.id, "sha256": cited.content_sha256},))
    return specimens.corpus(fleet=fleet, runs=(cited,), local_runs=local, records=(record,))


@pytest.fixture(scope="module")
def site() -> dict[str, str]:
    return pages(small(), TODAY)


@pytest.fixture(scope="module")
def read_pages(site: dict[str, str]) -> dict[str, Reader]:
    """Every page as a reader sees it, without its front matter."""
    return {path: read(content.split("---\n", 2)[2]) for path, content in site.items() if path.endswith(".md")}


@pytest.mark.parametrize("path", COMPARED)
def test_pages_are_as_reviewed(site: dict[str, str], path: str, request: pytest.FixtureRequest) -> None:
    golden = GOLDEN / path
    if request.config.getoption("--refresh-golden"):
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(site[path], encoding="utf-8", newline="\n")
    assert site[path] == golden.read_text(encoding="utf-8"), "a wanted change is taken over with --refresh-golden"


def test_no_golden_file_is_left_over() -> None:
    assert {path.relative_to(GOLDEN).as_posix() for path in GOLDEN.rglob("*.md")} == set(COMPARED)


def test_the_same_corpus_and_day_give_the_same_site(site: dict[str, str]) -> None:
    assert pages(small(), TODAY) == site
    assert list(site) == sorted(site)


def test_the_order_of_the_files_does_not_matter(site: dict[str, str]) -> None:
    corpus = small()
    turned = replace(
        corpus,
        local_runs=corpus.local_runs[::-1],
        knowledge=replace(corpus.knowledge, sources=MappingProxyType(dict(reversed(list(corpus.knowledge.sources.items()))))),
    )
    assert pages(turned, TODAY) == site


OUR_FRONT_MATTER = re.compile(
    r'---\ntitle: ".+"\n(description: ".+"\n)?(hide: \[[a-z, ]+\]\n)?'
    r"(search: \{boost: [0-9.]+\}\n)?(tags: \[.+\]\n)?---\n\n"
)


def test_every_page_begins_with_our_own_front_matter(site: dict[str, str]) -> None:
    for path, content in site.items():
        if path.endswith(".md"):
            assert OUR_FRONT_MATTER.match(content), path
            assert content.count("\n# ") == 1, path


def test_every_link_leads_somewhere(site: dict[str, str], read_pages: dict[str, Reader]) -> None:
    """Pages that people write are named here; the strict build checks their anchors."""
    written = {"how-to-read.md", "contract.md"}
    anchors = {path: {value for _, name, value in page.attributes if name == "id"} for path, page in read_pages.items()}
    for here, page in read_pages.items():
        for target in (value for tag, name, value in page.attributes if (tag, name) == ("a", "href")):
            path, _, anchor = target.partition("#")
            place = (Path("/", here).parent / path).resolve().relative_to("/").as_posix() if path else here
            if not target.startswith("https://"):
                assert place in site or place in written, f"{here}: {target}"
                assert not anchor or anchor in anchors.get(place, {anchor}), f"{here}: {target}"


def test_no_cell_is_blank(read_pages: dict[str, Reader]) -> None:
    for path, page in read_pages.items():
        assert all(cell.strip() for row in page.rows for cell in row), path


def test_hostile_text_is_shown_and_runs_nothing(read_pages: dict[str, Reader]) -> None:
    seen = " ".join(read_pages["runs/20261128t091000z-bench-endpoint-embedded.md"].text.split())
    assert all(" ".join(words.split()) in seen for words in specimens.HOSTILE[:10])
    for path, page in read_pages.items():
        assert not {"script", "img", "style", "iframe", "think"} & set(page.tags), path
        for _, name, value in page.attributes:
            assert not name.startswith("on"), path
            assert name != "style", path
            assert name != "href" or not value.startswith("javascript"), path


def named(*subjects: str) -> tuple[Run, ...]:
    """One run against each of these services."""
    return tuple(specimens.run(RunKind.ENDPOINT, name, minute=n, id=f"run-{n}") for n, name in enumerate(subjects))


def test_hostile_names_become_safe_pages() -> None:
    """Names of services and devices come from endpoints: they choose no path, no title and no front matter."""
    site = pages(specimens.corpus(local_runs=named(*specimens.HOSTILE)), TODAY)
    services = [path for path in site if path.startswith("services/local-")]
    assert len(services) >= len(specimens.HOSTILE)
    assert all(re.fullmatch(r"services/local-[a-z0-9-]+\.md", path) for path in services)
    for path in services:
        head = site[path].split("---\n")[1]
        assert not re.search(r"[<>]", head), path
        assert json.loads(head.split("\n")[0].removeprefix("title: "))


def test_names_that_share_a_slug_keep_their_own_pages() -> None:
    site = pages(specimens.corpus(local_runs=named("a/b", "a-b", "A/B")), TODAY)
    assert len([path for path in site if path.startswith("services/local-abc123abc123-a-b-")]) == 3


def test_a_run_that_is_not_here_is_named_without_a_link() -> None:
    corpus = small()
    site = pages(replace(corpus, runs=()), TODAY)
    page = site["records/2026-07-10-automatic-prefix-caching-fleet.md"]
    assert "20261128T092000Z-bench-micro-prefix-caching" in page
    assert "runs/20261128t092000z" not in page


def test_raw_evidence_keeps_its_hash(site: dict[str, str]) -> None:
    for run in small().runs + small().local_runs:
        published = json.loads(site[f"evidence/{run.id}.json"])
        assert content_hash(published) == published["content_sha256"] == run.content_sha256
    listed = json.loads(site["evidence/index.json"])["runs"]
    assert {entry["file"] for entry in listed} == {path for path in site if path.startswith("evidence/2")}


def test_evidence_written_before_a_field_existed_keeps_its_hash() -> None:
    older = {key: value for key, value in document(specimens.invalid_run()).items() if key not in {"survey", "native"}}
    older["content_sha256"] = content_hash(older)
    assert document(Run.model_validate_json(json.dumps(older))) == older


def test_damaged_inputs_give_no_site() -> None:
    first = Problem(place="adr/evidence/a.json", found="is not JSON", expected="a whole evidence file")
    second = Problem(place="adr/2026-07-10-x.md: status", found="is 'acepted'", expected="one of proposed, accepted")
    with pytest.raises(InputError) as caught:
        pages(replace(small(), problems=(first, second)), TODAY)
    assert str(first) in str(caught.value)
    assert str(second) in str(caught.value)


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {path for path in {*before, *after} if before.get(path) != after.get(path)}


def test_one_more_run_changes_only_the_pages_that_show_it(site: dict[str, str]) -> None:
    corpus = small()
    late = seal(specimens.invalid_run().model_copy(update={"id": "20261129T100000Z-bench-micro-x", "subject": "x"}))
    after = pages(replace(corpus, local_runs=(*corpus.local_runs, late)), TODAY)
    assert changed(site, after) == {
        "evidence/20261129T100000Z-bench-micro-x.json",
        "evidence/index.json",
        "machines/index.md",
        "machines/local-abc123abc123.md",
        "runs/20261129t100000z-bench-micro-x.md",
        "runs/index.md",
    }


def test_a_run_that_nothing_rests_on_changes_lists_alone(site: dict[str, str]) -> None:
    """It is older than the last of its kind, which may not be used either, so that it gets no page."""
    corpus = small()
    broken = Validity(valid=False, reasons=("host busy",))
    early = specimens.run(RunKind.MICRO, "continuous-batching", minute=-5, id="early", validity=broken)
    after = pages(replace(corpus, local_runs=(early, *corpus.local_runs)), TODAY)
    lists = {"evidence/index.json", "machines/index.md", "machines/local-abc123abc123.md", "runs/index.md"}
    assert changed(site, after) == {"evidence/early.json", *lists}


def test_a_change_in_one_evidence_file_changes_only_the_pages_that_show_it(site: dict[str, str]) -> None:
    corpus = small()
    ran = specimens.invalid_run()
    other = seal(ran.model_copy(update={"validity": Validity(valid=False, reasons=("another reason",))}))
    local = tuple(other if run.id == ran.id else run for run in corpus.local_runs)
    # The service whose benchmark it was, and what follows from that for the technique, name the reason, too.
    assert changed(site, pages(replace(corpus, local_runs=local), TODAY)) == {
        "checklists/local-abc123abc123-embedded.md",
        f"evidence/{ran.id}.json",
        "evidence/index.json",
        "machines/local-abc123abc123.md",
        "runs/20261128t094000z-bench-micro-continuous-batching.md",
        "runs/index.md",
        "services/local-abc123abc123-embedded.md",
        "techniques/continuous-batching.md",
    }


def test_one_more_record_changes_the_pages_of_its_technique_and_the_lists(site: dict[str, str]) -> None:
    corpus = small()
    held = corpus.records[0]
    draft = ledger.record(name="2026-11-30-automatic-prefix-caching-fleet", status=Status.PROPOSED, date=TODAY, body="Text.")
    after = pages(replace(corpus, records=(held, draft)), TODAY)
    # The day before it leads on to the day of the record.
    assert changed(site, after) == {
        "as-of/2026-07-10.md",
        "as-of/2026-11-30.md",
        "as-of/index.md",
        "index.md",
        "matrix.json",
        f"records/{draft.name}.md",
        "records/index.md",
        "techniques/automatic-prefix-caching.md",
    }


def test_dates_go_stale_with_the_day_of_the_build(site: dict[str, str]) -> None:
    fleet = specimens.small_fleet()
    limit = fleet.policies.freshness.declaration_days
    fresh = pages(small(), fleet.as_of + timedelta(days=limit))["fleet.md"]
    assert 'class="stale"' not in fresh
    assert f'datetime="2026-07-10" data-stale-after="{limit}"' in fresh
    assert 'class="stale"' in pages(small(), fleet.as_of + timedelta(days=limit + 1))["fleet.md"]


def matrix_row(site: dict[str, str]) -> list[str]:
    rows = read(site["index.md"].split("---\n", 2)[2]).rows
    return next([" ".join(cell.split()) for cell in row] for row in rows if "Automatic prefix caching" in row[0])


def test_the_chip_is_the_record_in_force_and_news_stand_beside_it() -> None:
    """The record keeps prefix caching; the facts of today have moved, and a draft waits."""
    held = ledger.record(body="Text.")
    draft = ledger.record(
        name="2026-11-30-automatic-prefix-caching-fleet",
        title="Automatic prefix caching on the fleet: investigate",
        status=Status.PROPOSED,
        date=TODAY,
        assessment=ledger.disabled(),
        decision=ledger.disabled().decision,
        body="Text.",
    )
    site = pages(small_with(held, draft), TODAY)
    _, state, decision, why, _ = matrix_row(site)
    assert state == "State enabled"
    assert decision == "Decision keep record of 2026-07-10 investigate proposed 2026-11-30"
    assert why.startswith("Why On, on one text service.")
    first = read(site["index.md"].split("---\n", 2)[2])
    assert "what has moved: state enabled → disabled, decision keep → investigate" in first.text
    assert ("a", "href", "techniques/automatic-prefix-caching.md#fleet-moved") in first.attributes
    assert f"nox -s adr -- accept {draft.name} --by WHO" in first.text
    feed = {row["technique"]: row for row in json.loads(site["matrix.json"])["scopes"]["fleet"]}["automatic-prefix-caching"]
    assert (feed["record"], feed["proposed"], feed["moved"]) == (held.name, [draft.name], True)


def test_a_technique_without_a_record_says_so(read_pages: dict[str, Reader]) -> None:
    row = next(row for row in read_pages["index.md"].rows if "Quantization" in row[0])
    assert "no record in force" in row[2]


def small_with(*records: Record) -> Corpus:
    return replace(small(), records=records)


def test_a_local_machine_is_marked_and_speaks_for_itself(site: dict[str, str]) -> None:
    first = site["index.md"]
    assert first.index("Small fleet") < first.index("Measured machines") < first.index('<span class="badge">local</span>')
    assert relative("machines/local-abc123abc123.md", "index.md") in first
    assert "No machine has been measured" in pages(specimens.corpus(local_runs=()), TODAY)["index.md"]
