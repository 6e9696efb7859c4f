"""What a change would do, told before anything is touched: the counterfactual cells, prices, plans and evidence."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gen.__main__ import run
from gen.assess import assess
from gen.corpus import Corpus, read_corpus
from gen.whatif import Consequence, scalar, whatif
from gen.words import Decision, State
from probes.errors import UsageError
from probes.evidence import Technique
from probes.fleet import Declared
from tests.gen.ledger import NOVEMBER, inventory, ledger
from tests.gen.planners.test_kv_capacity import QWEN3_8B, reading
from tests.gen.specimens import ROOT

TEXT = "text-8b"


@pytest.fixture(scope="module")
def shipped() -> Corpus:
    return read_corpus(ROOT)


def asked(service: str = TEXT, corpus: Corpus | None = None, /, **wanted: str) -> Consequence:
    return whatif(corpus or ledger(), service, wanted, NOVEMBER)


def moved(found: Consequence) -> set[tuple[Technique, str]]:
    """Name the cells that would differ in state or decision."""
    return {
        (before.technique, one.service)
        for before, after in zip(found.before, found.after, strict=True)
        for one, other in zip(before.cells, after.cells, strict=True)
        if (one.state, one.decision) != (other.state, other.decision)
    }


def test_the_supposed_fleet_decides_as_an_inventory_with_that_declaration_would() -> None:
    base = inventory()
    for control, value in (
        ("enable_prefix_caching", False),
        ("max_num_seqs", 32),
        ("cache_size", 0),
        ("KV_CACHE_PRECISION", "f16"),
    ):
        service = base.services[TEXT]
        settings = {**service.settings, control: Declared(value=value, as_of=NOVEMBER, source="what if")}
        fleet = base.model_copy(update={"services": {**base.services, TEXT: service.model_copy(update={"settings": settings})}})
        declared = assess(ledger(fleet=fleet), "fleet", NOVEMBER)
        found = asked(**{control: str(value).lower() if isinstance(value, bool) else str(value)})
        assert [row.key() for row in found.after] == [row.key() for row in declared], control


def test_one_switch_moves_its_own_cell_and_no_other() -> None:
    found = asked(enable_prefix_caching="false")
    assert moved(found) == {(Technique.PREFIX_CACHING, TEXT)}
    row = next(row for row in found.after if row.technique is Technique.PREFIX_CACHING)
    assert (row.state, row.decision) == (State.PARTLY, Decision.ENABLE)


def test_the_same_value_moves_nothing() -> None:
    found = asked(max_num_seqs="16")
    assert not moved(found)
    assert not found.new_prices
    assert not found.gone_prices
    assert not found.shifted


def test_prices_come_and_go_for_this_service_alone() -> None:
    found = asked(cache_size="0")
    assert [price.id for price in found.new_prices] == ["ovms.dynamic-pool.memory"]
    assert [price.id for price in found.gone_prices] == ["ovms.static-pool.preemption"]
    lighter = asked(enable_prefix_caching="false")
    assert [price.id for price in lighter.gone_prices] == ["ovms.eagle3.prefix-caching-unsupported"]
    assert not lighter.new_prices


def test_plans_are_worked_out_before_and_after() -> None:
    """Qwen3-8B: 36 x 8 x 512 bytes in f16 against 264 to 292 in u8, so a pool holds about half as many tokens."""
    found = asked(TEXT, ledger(runs=(reading(**QWEN3_8B),)), KV_CACHE_PRECISION="f16")
    shifted = {one.name: one for one in found.shifted}
    token = shifted["KV cache per token"]
    assert token.before is not None
    assert token.after is not None
    assert (token.before.low, token.before.high) == (76_032, 84_096)
    assert token.after.value == 147_456
    pool = shifted["tokens in the pool"].after
    assert pool is not None
    assert pool.value == 2 * 2**30 // (147_456 * 16) * 16


def test_what_a_plan_lacks_is_told_for_a_change_that_bears_on_it() -> None:
    assert any("kv_heads and head_size: " in one for one in asked(cache_size="4").unknown)
    assert not asked(enable_prefix_caching="false").unknown


def test_evidence_is_told_with_whom_it_speaks_for(shipped: Corpus) -> None:
    own = asked("embedded", shipped, KV_CACHE_PRECISION="u4")
    assert any(one.here and "15840 bytes of KV cache per token" in one.said for one in own.evidence)
    foreign = asked(TEXT, shipped, KV_CACHE_PRECISION="u4")
    assert foreign.evidence
    assert not any(one.here for one in foreign.evidence)
    assert all("openvino-genai 2026.4.1.0" in one.speaks_for for one in foreign.evidence)


def test_a_draft_is_told_with_what_drafting_showed_and_what_documents_say(shipped: Corpus) -> None:
    found = asked(TEXT, shipped, draft_eagle3_mode="true")
    said = " ".join(one.said for one in found.evidence)
    assert "with prefix caching was effective" in said
    assert "documented: the OVMS guide of 2026.0 to 2026.3 excludes prefix caching" in said
    assert moved(found) >= {(Technique.SPECULATIVE_DECODING, TEXT)}


def test_a_draft_is_told_what_memory_is_left_and_who_shares_the_card() -> None:
    found = asked("text-8b-b580", draft_eagle3_mode="true")
    assert "memory left on Intel Arc B580" in {one.name for one in found.standing}
    assert any("Jellyfin" in one for one in found.unknown)
    assert not asked(max_num_seqs="8").standing


def test_a_result_that_moves_is_not_told_as_one_that_stands() -> None:
    found = asked("text-8b-b580", cache_size="4", draft_eagle3_mode="true")
    moving = {one.name for one in found.shifted}
    assert "memory left on Intel Arc B580" in moving
    assert not moving & {one.name for one in found.standing}


def test_a_stand_in_is_asked_for_what_it_can_be_set_to_alone() -> None:
    both = asked(cache_size="4", draft_eagle3_mode="true").measure
    assert "with cache_size=4,draft_eagle3_mode=true beside it" in both[0]
    assert both[1].endswith("nox -s compare -- embedded embedded:cache_size=4")
    assert len(asked(draft_eagle3_mode="true").measure) == 1


def test_measured_services_are_judged_by_their_measurement(shipped: Corpus) -> None:
    found = asked("embedded", shipped, enable_prefix_caching="false")
    (cell,) = next(row for row in found.after if row.technique is Technique.PREFIX_CACHING).cells
    assert (cell.state, cell.decision) == (State.DISABLED, Decision.ENABLE)
    assert found.measure == ("nox -s compare -- embedded embedded:enable_prefix_caching=false",)


def test_the_way_back_is_the_value_of_today(shipped: Corpus) -> None:
    found = asked(max_num_seqs="32")
    assert found.roll_back == ("set max_num_seqs back to 16 (declared, 2026-07-10)",)
    (unset,) = asked(rest_workers="4").roll_back
    assert unset.startswith("take rest_workers out again, which leaves it at its default")
    (one_of_many,) = asked("embedded", shipped, num_assistant_tokens="3").roll_back
    assert one_of_many == "take num_assistant_tokens out again"
    assert any("--max_num_seqs" in step for step in found.apply)


def test_a_control_of_a_later_release_is_told_as_not_there() -> None:
    (change,) = asked(cache_interval_multiplier="16").changes
    assert change.not_in_release == "OVMS 2026.2 does not have it: it is known from 2026.2.1 on"


@pytest.mark.parametrize(
    ("service", "wanted", "said"),
    [
        ("text8b", {"max_num_seqs": "2"}, "'text8b' is no service of fleet.yml; .*did you mean text-8b"),
        (TEXT, {"max_num_seq": "2"}, "'max_num_seq' is no control of OVMS; .*did you mean max_num_seqs"),
        (TEXT, {"gpu_memory_utilization": "0.9"}, "it is a control of vLLM; expected one of"),
        (TEXT, {"max_num_seqs": "many"}, "max_num_seqs: is 'many'; expected a whole number at least 1"),
        (TEXT, {"max_num_seqs": "0"}, "expected a whole number at least 1"),
        (TEXT, {"max_num_seqs": "true"}, "expected a whole number at least 1"),
        (TEXT, {"enable_prefix_caching": "1"}, "expected true or false"),
        (TEXT, {"pipeline_type": "LMCB"}, "expected one of LM, VLM, .*did you mean LM_CB"),
        (TEXT, {"cache_interval_multiplier": "4"}, "at least 8 and at most 256"),
        ("jellyfin", {"x": "1"}, "jellyfin: its runtime is 'none', of which no control is known"),
        ("embedded", {"cache_size": "1"}, "no machine has been measured yet"),
    ],
)
def test_what_is_unknown_is_one_message_with_what_was_meant(service: str, wanted: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        whatif(ledger(), service, wanted, NOVEMBER)


def test_values_are_read_as_configuration_files_do() -> None:
    assert [scalar(one) for one in ("TRUE", "false", "32", "-1", "0.9", "1e3", "u8", "2026.2.1")] == [
        True, False, 32, -1, 0.9, 1000.0, "u8", "2026.2.1",
    ]  # fmt: skip


def command(root: Path, *words: str) -> Any:
    return run(["whatif", *words, "--root", str(root), "--today", "2026-11-30"], {}, NOVEMBER, root)


def test_the_command_writes_nothing_and_answers_in_json(tmp_path: Path) -> None:
    shutil.copy(ROOT / "fleet.yml", tmp_path / "fleet.yml")
    (tmp_path / "adr").mkdir()
    before = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*"))
    told = command(tmp_path, TEXT, "max_num_seqs=32", "cache_size=0", "--json")
    document = json.loads(told.shown[0])
    assert told.code == 0
    assert document["service"] == TEXT
    assert [change["control"] for change in document["changes"]] == ["max_num_seqs", "cache_size"]
    assert {one["id"] for one in document["new_prices"]} == {"ovms.dynamic-pool.memory"}
    assert len(document["cells"]) == 7
    assert sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*")) == before


@pytest.mark.parametrize("words", [("max_num_seqs",), ("=4",), ("max_num_seqs=",)])
def test_a_change_without_both_halves_is_refused(tmp_path: Path, words: tuple[str, ...]) -> None:
    shutil.copy(ROOT / "fleet.yml", tmp_path / "fleet.yml")
    with pytest.raises(UsageError, match="is no change; expected CONTROL=VALUE"):
        command(tmp_path, TEXT, *words)


def test_two_values_for_one_control_are_refused(tmp_path: Path) -> None:
    shutil.copy(ROOT / "fleet.yml", tmp_path / "fleet.yml")
    with pytest.raises(UsageError, match="is given twice, as '4' and as '8'"):
        command(tmp_path, TEXT, "max_num_seqs=4", "max_num_seqs=8")


def test_a_hypothesis_leaves_the_corpus_as_it_was() -> None:
    corpus = ledger()
    copy = replace(corpus)
    whatif(corpus, TEXT, {"cache_size": "8"}, NOVEMBER)
    assert corpus == copy


def test_what_is_asked_of_one_thing_is_told_in_one_line_and_a_shortage_as_such(tmp_path: Path) -> None:
    shutil.copy(ROOT / "fleet.yml", tmp_path / "fleet.yml")
    told = "\n".join(str(line) for line in command(tmp_path, "text-30b", "cache_size=8").shown)
    assert "missing: layers, kv_heads and head_size: name the model's folder" in told
    left = {one: line for line in told.splitlines() for one in ("B60", "B580") if f"memory left on Intel Arc {one}" in line}
    pro = next(line for line in told.splitlines() if "memory left on Intel Arc Pro B60" in line)
    assert pro.endswith(", so it may not fit")
    assert "so it does not fit -> " in left["B580"]
    assert left["B580"].endswith(", so it does not fit")


def test_a_value_that_a_service_has_already_changes_nothing_and_is_told(tmp_path: Path) -> None:
    shutil.copy(ROOT / "fleet.yml", tmp_path / "fleet.yml")
    same, other = ([str(line) for line in command(tmp_path, TEXT, f"max_num_seqs={n}").shown] for n in (16, 17))
    assert "    It runs so already: nothing would change" in same
    assert not any("so already" in line for line in other)
    assert json.loads(command(tmp_path, TEXT, "max_num_seqs=16", "--json").shown[0])["changes"][0]["so_already"] is True
