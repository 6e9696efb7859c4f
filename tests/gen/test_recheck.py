"""Knowledge that was checked for older releases than run is told as such, beside an assessment and never in it."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from types import MappingProxyType
from typing import Any

import pytest

from gen.assess import assess
from gen.changes import propose
from gen.check import check
from gen.corpus import Corpus
from gen.findings import DUE, Finding, Rule
from gen.knowledge import Checked, Engine, Knowledge
from gen.knowledge.schema import Known
from gen.recheck import running, unverified
from gen.records import parse_record
from gen.site import pages
from gen.versions import parse_version
from gen.view import FLEET
from probes.evidence import (
    Endpoint,
    EndpointState,
    FleetScope,
    Provenance,
    ProvenanceKind,
    Run,
    RunKind,
    Runtime,
    Setting,
    Technique,
)
from probes.fleet import Fleet, RuntimeName
from tests.gen import specimens
from tests.gen.ledger import NOVEMBER, inventory, knowledge, ledger
from tests.gen.reading import read

SERVICE = "text-8b"
TITLE = "8B text"
# A release of OVMS that nobody can have looked at.
NEWER = "2099.1"


def declaring(version: str) -> Fleet:
    service = inventory().services[SERVICE].model_copy(update={"runtime_version": version})
    return inventory().model_copy(update={"services": dict(inventory().services) | {SERVICE: service}})


def seeing(version: str, *settings: tuple[str, Any], name: str = RuntimeName.OVMS.value) -> Run:
    seen = Provenance(kind=ProvenanceKind.OBSERVED, date=specimens.START.date(), source="/v2")
    return specimens.run(
        RunKind.ENDPOINT,
        SERVICE,
        scope=FleetScope(service=SERVICE),
        runtime=Runtime(name=name, version=version),
        endpoint=Endpoint(url="http://h:8000", state=EndpointState.GENERATING),
        settings=tuple(
            Setting(technique=Technique.CONTINUOUS_BATCHING, control=control, value=value, provenance=seen)
            for control, value in settings
        ),
    )


def found(corpus: Corpus, rule: Rule = Rule.UNVERIFIED) -> list[Finding]:
    return [one for one in check(corpus, NOVEMBER) if one.rule is rule]


def described(source: str, **changes: Any) -> Knowledge:
    """The knowledge with one source changed."""
    known = knowledge()
    changed = known.sources[source].model_copy(update=changes)
    return replace(known, sources=MappingProxyType({**known.sources, source: changed}))


@pytest.mark.parametrize("where", ["declared", "observed"])
def test_a_newer_release_asks_for_a_new_check_of_all_that_is_known_of_its_runtime(where: str) -> None:
    corpus = ledger(fleet=declaring(NEWER)) if where == "declared" else ledger(runs=(seeing(NEWER, ("max_num_seqs", 16)),))
    asked = [one for one in found(corpus) if NEWER in one.message]
    text = " ".join(one.message for one in asked)
    holding = [k for k in knowledge().of_engine(Engine.OVMS) if knowledge().applies(k, Engine.OVMS, NEWER, NOVEMBER)]
    assert len(holding) > 20
    assert all(one.id in text for one in holding)
    by_source = {one.about: one for one in asked}
    told = by_source["ovms-main-2026-08-21"]
    assert told.message.startswith(f"OVMS {NEWER} runs as {TITLE}; ")
    assert "facts were checked for 2026.3: " in told.message
    assert "look for 2099.1 where ovms-main-2026-08-21 looked (github:openvinotoolkit/model_server@7e4df0c7)" in told.fix
    assert {one.place for one in asked} == {"gen/knowledge"}
    assert Rule.UNVERIFIED in DUE
    assert "releases/ovms" in text


def test_what_was_seen_counts_before_what_was_declared() -> None:
    corpus = ledger(fleet=declaring(NEWER), runs=(seeing("2026.2"),))
    assert not [one for one in found(corpus) if NEWER in one.message]
    assert {one.version for one in running(corpus, NOVEMBER) if one.service == SERVICE} == {"2026.2"}


@pytest.mark.parametrize("version", ["7e4df0c7", "b0-unknown", "0.0.0", "0.1.dev1+g1234567", "latest", "1234567"])
def test_a_version_that_names_no_release_is_doubted_on_pages_and_asks_for_nothing(version: str) -> None:
    corpus = ledger(fleet=declaring(version))
    assert not [one for one in found(corpus) if version in one.message]
    doubted = [one for one in unverified(knowledge(), running(corpus, NOVEMBER), NOVEMBER) if one.by.version == version]
    assert doubted
    assert not any(one.comparable for one in doubted)
    # What was seen and names no release gives way to what was declared and does.
    seen = ledger(fleet=declaring("2026.2"), runs=(seeing(version),))
    assert {one.version for one in running(seen, NOVEMBER) if one.service == SERVICE} == {"2026.2"}


@pytest.mark.parametrize(
    ("version", "newer"),
    [
        ("2026.3.0-12345-abc", False),
        ("2026.3", False),
        ("2026.3.0.61d4ad1c", False),
        ("2026.3.0.dev20260701", False),
        ("2026.3.1", True),
        ("2026.4.0.dev20260901", True),
        ("2026.20", True),
        ("2026.4.0-12345-abc", True),
    ],
)
def test_builds_and_previews_of_a_release_compare_as_releases(version: str, newer: bool) -> None:
    asked = [one.message for one in found(ledger(fleet=declaring(version))) if one.about == "ovms-main-2026-08-21"]
    assert any(f"OVMS {version} runs as {TITLE};" in message for message in asked) is newer


def test_a_service_whose_release_nobody_knows_asks_for_nothing() -> None:
    unknown = [name for name, one in inventory().services.items() if not isinstance(one.runtime_version, str)]
    assert unknown
    assert not {one.service for one in running(ledger(), NOVEMBER)} & set(unknown)


def test_every_place_that_shows_a_fact_shows_that_it_is_unverified() -> None:
    site = pages(ledger(fleet=declaring(NEWER)), NOVEMBER)
    mark = f"unverified for {NEWER}"
    for path in (
        f"services/{SERVICE}.md",
        "techniques/continuous-batching.md",
        "techniques/flash-attention.md",
        "knowledge/ovms.md",
        "knowledge/by-age.md",
    ):
        assert mark in read(site[path]).text, path
    assert mark not in read(site["services/text-4b.md"]).text
    assert mark not in read(site["knowledge/vllm.md"]).text
    by_age = read(site["knowledge/by-age.md"])
    (row,) = [row for row in by_age.rows if row[0].strip().endswith(": cache_size, --cache_size.")]
    assert "OVMS 2026.3" in row[4]
    assert TITLE in row[5]
    assert "checked for 2026.3" in row[5]


def test_an_assessment_is_the_same_whatever_was_checked_for_which_release() -> None:
    """Neither a passing day nor a new check drafts a record: both are told beside the assessment."""
    corpus = ledger(fleet=declaring("2026.3.1"))
    later = replace(corpus, knowledge=described("ovms-main-2026-08-21", describes={Engine.OVMS: "2026.3.1"}))
    assert len(found(later)) < len(found(corpus))
    assert assess(later, FLEET, NOVEMBER) == assess(corpus, FLEET, NOVEMBER)
    aged = date(2027, 3, 30)
    then = [one.key() for one in assess(corpus, FLEET, aged)]
    assert then == [one.key() for one in assess(corpus, FLEET, NOVEMBER)]
    drafts = propose(corpus, NOVEMBER)
    assert [draft.name for draft in propose(later, NOVEMBER)] == [draft.name for draft in drafts]
    waiting = tuple(parse_record(draft.name, draft.text, draft.path) for draft in drafts)
    assert propose(replace(later, records=waiting), NOVEMBER) == (), "a mark that goes or comes drafts nothing again"


def test_a_source_that_names_no_release_was_checked_for_none() -> None:
    services = dict(inventory().services)
    services[SERVICE] = services[SERVICE].model_copy(update={"runtime": RuntimeName.LLAMACPP, "runtime_version": "b11549"})
    asked = found(ledger(fleet=inventory().model_copy(update={"services": services})))
    (finding,) = [one for one in asked if one.about == "llamacpp-server-readme"]
    assert finding.message.startswith(f"llama.cpp b11549 runs as {TITLE}; ")
    assert "checked for no release that its source names" in finding.message


def test_a_setting_that_nobody_has_looked_up_is_told_by_the_newest_run_that_shows_it() -> None:
    one, two = seeing("2026.2", ("warp_factor", 9), ("max_num_seqs", 16)), seeing("2026.2", ("warp_factor", 9))
    told = ("kind", "subject", "scope", "runtime", "endpoint", "settings")
    two = specimens.run(minute=5, **{name: getattr(two, name) for name in told})
    (finding,) = found(ledger(runs=(one, two)), Rule.UNKNOWN_SETTING)
    assert finding.place == f"adr/evidence/{two.id}.json"
    assert finding.message == f"{SERVICE} shows warp_factor, which is not a known control of ovms"
    assert finding.fix == "look up what it does, and add it to gen/knowledge/controls/ovms.yaml with its source"
    page = read(pages(ledger(runs=(one, two)), NOVEMBER)[f"services/{SERVICE}.md"])
    assert [row[0].split()[1:] for row in page.rows if "warp_factor" in row[0]] == [["warp_factor", "unknown", "control"]]
    # A runtime of which no control is known has no unknown ones.
    assert not found(ledger(runs=(seeing("1.0", ("warp_factor", 9), name="openai-compatible"),)), Rule.UNKNOWN_SETTING)


def test_the_page_of_knowledge_holds_everything_with_the_oldest_look_first() -> None:
    known = described("ovms-v2025.4")
    first = known.facts[3].model_copy(update={"checked": date(2026, 1, 2)})
    known = replace(known, facts=(*known.facts[:3], first, *known.facts[4:]))
    page = read(pages(ledger(knowledge=known), NOVEMBER)["knowledge/by-age.md"])
    anchors = [value.removeprefix("age-") for _, name, value in page.attributes if name == "id" and value.startswith("age-")]
    entries: list[Known] = [*known.techniques.values(), *known.facts, *known.conflicts]
    entries += [control for controls in known.controls.values() for control in controls]
    ids = [one.id for one in entries] + [f"{one.engine}-{one.version}" for one in known.releases]
    assert sorted(anchors) == sorted(ids)
    assert anchors[0] == first.id
    sources = read(pages(ledger(knowledge=known), NOVEMBER)["sources.md"])
    assert all(any(one.title in row[0] for row in sources.rows) for one in known.sources.values())
    assert "names no release" in sources.text
    assert "no text" not in sources.text


def test_something_was_checked_for_the_newest_release_of_its_sources_or_where_it_begins() -> None:
    known = knowledge()
    by_id = {one.id: one for one in (*known.facts, *known.conflicts)}
    assert known.checked_for(by_id["ovms.continuous-batching.default"], Engine.OVMS) == Checked(
        release="2026.2", source="ovms-v2026.2"
    )
    assert known.checked_for(by_id["dflash.one-request"], Engine.OVMS) == Checked(
        release="2026.4", source="genai-main-2026-08-21"
    )
    assert known.checked_for(by_id["vllm.disaggregation.no-throughput"], Engine.VLLM).release is None
    for engine in Engine:
        for one in known.of_engine(engine):
            release = known.checked_for(one, engine).release
            begins = one.true_from.release if one.true_from else None
            assert begins is None or (release is not None and parse_version(begins) <= parse_version(release)), one.id


def test_a_draft_marks_the_reasons_and_prices_that_nobody_has_checked_for_the_running_release() -> None:
    def text(version: str) -> str:
        drafts = propose(ledger(fleet=declaring(version)), NOVEMBER, FLEET)
        return next(draft.text for draft in drafts if draft.technique is Technique.SPECULATIVE_DECODING)

    marked = [line for line in text(NEWER).splitlines() if f"*Unverified for OVMS {NEWER} (IA030).*" in line]
    assert any(line.startswith("- Price: ") for line in marked)
    drivers = text(NEWER).partition("## Decision drivers")[2].partition("##")[0]
    assert f"Unverified for OVMS {NEWER}" in drivers
    assert "nverified for" not in text("2026.2")


@pytest.mark.parametrize(("kinds", "asked"), [({"cpu"}, False), ({"gpu"}, True), ({"cpu", "gpu", "npu"}, True)])
def test_a_machine_without_a_card_is_asked_nothing_about_cards(kinds: set[str], asked: bool) -> None:
    corpus = ledger(local_runs=(specimens.endpoint_run(),))
    (mine,) = [one for one in running(corpus, NOVEMBER) if one.scope != FLEET]
    on = replace(mine, kinds=frozenset(kinds), version=NEWER)
    found = {one.id for one in unverified(knowledge(), [on], NOVEMBER)}
    of_cards = {"openvino.xattention.supported", "openvino.xattention.refused-on-xe2", "openvino.attention.foreign-switches"}
    assert (of_cards <= found) is asked
    assert asked or found.isdisjoint(of_cards)
    assert mine.kinds == {"cpu", "gpu", "npu"}, "where nobody tells the device it may be any"
