"""Every known thing has a source and a date, and applies by release and day only."""

from __future__ import annotations

import ast
import shutil
from datetime import date, timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

import gen.knowledge
from gen.knowledge import Engine, Role, load_knowledge
from gen.knowledge.control import Accepts, ControlFile
from gen.knowledge.schema import (
    ENGINES,
    Bound,
    Condition,
    ConflictFile,
    Default,
    FactFile,
    Known,
    ModelEntry,
    ReleaseFile,
    Silent,
    SourceFile,
    Supports,
    TechniqueFile,
    Trait,
    same_value,
)
from probes import strictyaml
from probes.endpoints.adapters import ADAPTERS
from probes.errors import InputError
from probes.evidence import ModelKind, Scalar, Technique
from probes.fleet import Declared, RuntimeName, ServiceKind
from probes.schema import Model
from tests.captures import DOCUMENTED, capture
from tests.captures import FOLDER as CAPTURES
from tests.gen.ledger import JULY, NOVEMBER, ROOT, inventory, knowledge
from tests.probing import metrics_reply

FOLDER = Path(gen.knowledge.__file__).parent
SPECULATIVE = Technique.SPECULATIVE_DECODING


def everything() -> list[Known]:
    known = knowledge()
    controls = [control for items in known.controls.values() for control in items]
    kinds = [*known.techniques.values(), *known.models.values()]
    return [*kinds, *controls, *known.facts, *known.conflicts, *known.cards, *known.claims]


def test_every_entry_names_a_source_that_is_listed_with_a_place_and_a_check_date() -> None:
    known = knowledge()
    for entry in everything():
        source = known.source_of(entry)
        assert sum(place is not None for place in (source.url, source.repository, source.measurement)) == 1, source.id
        assert source.checked <= NOVEMBER
        assert entry.checked <= NOVEMBER, entry.id
        assert all(other in known.sources for other in entry.also), entry.id


def test_every_source_is_used() -> None:
    known = knowledge()
    used = {source for entry in everything() for source in (entry.source, *entry.also)}
    used |= {release.source for release in known.releases}
    unused = set(known.sources) - used
    assert not unused


def test_no_source_was_checked_before_it_was_published() -> None:
    for source in knowledge().sources.values():
        assert source.published is None or source.published <= source.checked, source.id


@pytest.mark.parametrize(
    "engine",
    ["ovms", "openvino-genai", "vllm", "sglang", "llama.cpp", "ollama", "lm-studio", "tensorrt-llm"],
)
def test_every_llm_runtime_says_something_about_each_technique(engine: str) -> None:
    covered = {control.technique for control in knowledge().controls[Engine(engine)]}
    assert covered == set(Technique)


def test_a_setting_belongs_to_one_control_of_its_runtime() -> None:
    for engine, controls in knowledge().controls.items():
        names = [setting for control in controls for setting in control.settings]
        assert len(names) == len(set(names)), engine


def test_every_runtime_of_an_inventory_is_an_engine_or_known_to_be_none() -> None:
    without = {RuntimeName.NONE, RuntimeName.OPENAI_COMPATIBLE}
    assert set(ENGINES) == set(RuntimeName) - without


def test_every_control_that_an_adapter_speaks_of_is_known() -> None:
    for runtime, adapter in ADAPTERS.items():
        reading = adapter.read({}, "")
        spoken = {one.control for one in reading.not_told if one.control}
        known = {setting for control in knowledge().controls[ENGINES[runtime]] for setting in control.settings}
        assert spoken <= known, runtime


def test_no_name_that_the_probes_can_write_as_a_control_is_unknown() -> None:
    """Read off the sources, so that a value which no capture shows counts as well."""
    known = {setting for controls in knowledge().controls.values() for control in controls for setting in control.settings}
    written = {
        word.value: path.name
        for folder in ("endpoints", "declared")
        for path in sorted((ROOT / "probes" / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.keyword) and node.arg == "control"
        for word in [node.value]
        if isinstance(word, ast.Constant) and isinstance(word.value, str) and word.value
    }
    assert len(written) > 60
    # An inner step of the share of a slot: llama.cpp's reader drops it again.
    assert {name: file for name, file in written.items() if name not in known} == {"kv_unified": "llamacpp.py"}


def test_what_a_models_own_files_tell_is_a_control_of_every_runtime_that_serves_models() -> None:
    for engine, controls in knowledge().controls.items():
        if engine in set(ENGINES.values()):
            assert any("weight_precision" in control.settings for control in controls), engine


def test_every_control_that_a_recorded_server_shows_is_known() -> None:
    """Captures of real servers and answers in their documented form, all that there are of each runtime."""
    folders = sorted(one for place in (CAPTURES, DOCUMENTED) for one in place.iterdir() if one.is_dir())
    shown = 0
    for folder in folders:
        answers = [capture(folder.name, path.stem, folder.parent) for path in sorted(folder.glob("get_*.http"))]
        replies = {one.path: metrics_reply(one.body, one.status) for one in answers}
        for runtime, adapter in ADAPTERS.items():
            if adapter.recognises(replies):
                known = {setting for control in knowledge().controls[ENGINES[runtime]] for setting in control.settings}
                seen = {one.control for one in adapter.read(replies, "").seen}
                assert seen <= known, (folder.name, runtime)
                shown += len(seen)
    assert shown > 25


def test_the_settings_of_the_shipped_inventory_play_the_roles_that_rules_ask_for() -> None:
    known = knowledge()
    for engine in (Engine.OVMS, Engine.OPENVINO_GENAI):
        assert known.settings_in(engine, Role.SWITCH, Technique.PREFIX_CACHING) == ("enable_prefix_caching",)
        assert known.settings_in(engine, Role.SEQUENCES) == ("max_num_seqs",)
        assert known.settings_in(engine, Role.TOKENS) == ("max_num_batched_tokens",)
        assert known.settings_in(engine, Role.POOL) == ("cache_size",)
        assert known.settings_in(engine, Role.KV_PRECISION) == ("KV_CACHE_PRECISION",)
    assert known.settings_in(None, Role.SWITCH) == ()
    assert known.control(None, "enable_prefix_caching") is None


def limits(version: str | None, on: date) -> set[str]:
    return {c.id for c in knowledge().conflicts_for(Engine.OVMS, version, on, SPECULATIVE)}


def methods(version: str | None, on: date) -> set[str]:
    found = knowledge().facts_for(Supports, Engine.OVMS, version, on, SPECULATIVE)
    return {f"{fact.method} {fact.form}".strip() for fact in found}


def test_limits_of_eagle3_hold_from_2026_0_to_2026_3_and_are_silent_after() -> None:
    limit = "ovms.eagle3.prefix-caching-unsupported"
    for version in ("2026.0", "2026.1", "2026.2", "2026.2.1", "2026.3", "2026.3.1"):
        assert limit in limits(version, NOVEMBER), version
    for version in ("2025.4", "2026.4.0", "2026.4.1", "2026.20"):
        assert limit not in limits(version, NOVEMBER), version
    silent = knowledge().facts_for(Silent, Engine.OVMS, "2026.4.1", NOVEMBER, SPECULATIVE)
    assert [fact.id for fact in silent] == ["ovms.eagle3.limits-not-stated"]


def test_what_a_release_brings_is_unknown_before_the_day_it_came_out() -> None:
    assert "MTP" not in methods("2026.4.1", JULY)
    assert "MTP" not in methods("2026.4.1", date(2026, 9, 16))
    assert "MTP" in methods("2026.4.1", date(2026, 9, 17))
    assert methods("2026.2", JULY) == methods("2026.2", NOVEMBER) == {"draft model", "prompt lookup", "EAGLE-3"}


def test_a_release_that_lifts_a_limit_lifts_it_for_itself_only() -> None:
    limit = "ovms.dflash.max-tokens"
    assert limit in limits("2026.4.0", NOVEMBER)
    assert limit not in limits("2026.4.1", NOVEMBER)


def test_of_an_unknown_release_only_what_holds_for_all_of_them_is_known() -> None:
    assert methods(None, NOVEMBER) == set()
    assert limits("latest", NOVEMBER) == set()
    assert knowledge().absent(Engine.OLLAMA, Technique.DISAGGREGATION, None, JULY) is not None


def test_the_check_date_never_decides_whether_something_applies() -> None:
    known = knowledge()
    fact = next(fact for fact in known.facts if fact.id == "ovms.eagle3.supported")
    assert fact.checked > JULY
    assert known.applies(fact, Engine.OVMS, "2026.2", JULY)
    long_ago = fact.model_copy(update={"checked": date(2020, 1, 1)})
    assert known.applies(long_ago, Engine.OVMS, "2026.2", NOVEMBER)


def test_a_day_bounds_a_fact_as_a_release_does() -> None:
    known = knowledge()
    conflict = next(c for c in known.conflicts if c.id == "openvino.xattention.refused-on-xe2")
    assert known.born(conflict, Engine.OVMS) == date(2026, 6, 4)
    assert not known.applies(conflict, Engine.OVMS, "2026.2", date(2026, 6, 3))
    assert known.applies(conflict, Engine.OVMS, "2026.2", date(2026, 6, 4))
    closed = conflict.model_copy(update={"true_until": Bound(day=JULY)})
    assert known.exists(closed, Engine.OVMS, JULY - timedelta(days=1))
    assert not known.exists(closed, Engine.OVMS, JULY)


def test_the_newest_release_is_the_highest_that_is_out() -> None:
    versions = [(r := knowledge().newest_release(Engine.OVMS, day)) and r.version for day in (JULY, NOVEMBER)]
    assert versions == ["2026.2.1", "2026.4.1"]
    assert knowledge().newest_release(Engine.OVMS, date(2020, 1, 1)) is None
    assert knowledge().newest_release(None, NOVEMBER) is None


def test_prefix_caching_defaults_differ_by_the_way_ovms_is_started() -> None:
    found = knowledge().facts_for(Default, Engine.OVMS, "2026.2", JULY, Technique.PREFIX_CACHING)
    assert {fact.path: fact.value for fact in found} == {"graph.pbtxt without the field": False, "command line": True}


def test_each_technique_says_for_every_kind_of_service_whether_it_applies_and_why() -> None:
    for entry in knowledge().techniques.values():
        assert set(entry.kinds) == set(ServiceKind)
        assert all(kind.why.endswith(".") for kind in entry.kinds.values())


def test_each_kind_of_model_has_or_lacks_every_trait_and_says_so_in_a_sentence() -> None:
    assert list(knowledge().models) == list(ModelKind)
    for entry in knowledge().models.values():
        assert {*entry.has, *entry.lacks} == set(Trait)
        assert all(said.endswith(".") for said in (entry.about, *entry.has.values(), *entry.lacks.values()))


def test_a_trait_that_is_forgotten_or_told_twice_is_refused() -> None:
    decoder = knowledge().models[ModelKind.DECODER].model_dump()
    for left_out in ("has", "nothing"):
        changed = {**decoder, "lacks": {Trait.ATTENTION: "It has none."}} | ({"has": {}} if left_out == "has" else {})
        with pytest.raises(ValidationError, match="each trait once"):
            ModelEntry.model_validate(changed)


def test_a_condition_compares_values_as_settings_and_not_as_numbers_of_python() -> None:
    assert Condition(setting="s", equals=True).holds(value=True)
    assert not Condition(setting="s", equals=True).holds(1)
    assert Condition(setting="s", one_of=("u4",)).holds("U4")
    assert Condition(setting="s", above=1).holds(2)
    assert not Condition(setting="s", above=0).holds(value=True)
    assert not Condition(setting="s", present=True).holds(None)
    assert not same_value("2", 2)


def changed(name: str, old: str, new: str) -> str:
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize(
    ("name", "model", "old", "new", "told"),
    [
        ("facts.yaml", FactFile, "source: ovms-v2026.2", "sauce: ovms-v2026.2", "sauce: is not a known field"),
        ("facts.yaml", FactFile, "checked: 2026-11-30", "checked: soon", "checked: is 'soon'; expected date"),
        ("facts.yaml", FactFile, 'release: "2026.0"', "release: 2026.0", "put it in quotes"),
        ("facts.yaml", FactFile, 'release: "2026.0"', "release: latest", "is not a release number"),
        ("facts.yaml", FactFile, "method: EAGLE-3", "method: EAGLE-9", "method: is 'EAGLE-9'; expected one of 'EAGLE-3', "),
        ("conflicts.yaml", ConflictFile, "prefix_caching, equals: true", "prefix_caching", "exactly one of equals"),
        ("techniques.yaml", TechniqueFile, "    subject: kv-cache\n", "    subject: a\n    subject: b\n", "duplicate key"),
        ("techniques.yaml", TechniqueFile, "      vision: {", "      visions: {", "'visions'"),
        ("sources.yaml", SourceFile, "https://docs.vllm.ai/", "ftp://docs.vllm.ai/", "url: is 'ftp://docs.vllm.ai/'"),
        ("controls/ovms.yaml", ControlFile, "set_by: [artifact]", "set_by: []", "set_by for a control that exists"),
        ("releases.yaml", ReleaseFile, "2025-09-03", "2025-13-03", "published: is '2025-13-03'"),
    ],
)
def test_a_mistake_is_told_with_file_line_field_value_and_expectation(
    name: str, model: type[Model], old: str, new: str, told: str
) -> None:
    with pytest.raises(InputError) as caught:
        strictyaml.loads(changed(name, old, new), model, name)
    assert f"{name}:" in str(caught.value)
    assert told in str(caught.value)


def test_what_no_single_entry_can_see_is_told_all_at_once(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path, ignore=shutil.ignore_patterns("*.py", "__pycache__"), dirs_exist_ok=True)
    for name, old, new in (
        ("facts.yaml", "source: ovms-v2026.2", "source: hearsay"),
        ("facts.yaml", 'true_from: {release: "2026.0"}', 'true_from: {release: "2031.0"}'),
        ("facts.yaml", "id: ovms.dflash.supported", "id: ovms.mtp.supported"),
        ("conflicts.yaml", 'true_until: {release: "2026.4.0"}', 'true_until: {release: "2025.4"}'),
        ("controls/vllm.yaml", "engine: vllm", "engine: sglang"),
    ):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert old in text
        (tmp_path / name).write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_knowledge(tmp_path)
    told = str(caught.value)
    assert (
        "gen/knowledge/facts.yaml: ovms.continuous-batching.default: source: is 'hearsay'; expected an id of sources.yaml"
        in told
    )
    assert "true_from: names release 2031.0; expected a release of ovms in releases.yaml that reaches it" in told
    assert "uses the id 'ovms.mtp.supported' 2 times; expected each id once" in told
    assert "ovms.eagle3.prefix-caching-unsupported: true_until: does not come after true_from; expected a later release" in told
    assert "describes sglang in 2 files; expected one" in told


def test_a_missing_file_is_a_message_and_no_traceback(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gen/knowledge/techniques\.yaml: cannot be read"):
        load_knowledge(tmp_path)


# Values that controls take


def test_every_declared_setting_of_the_inventory_is_one_that_its_control_takes() -> None:
    known, checked = knowledge(), 0
    for service in inventory().services.values():
        for name, entry in service.settings.items():
            control = known.control(ENGINES.get(service.runtime), name)
            if control is not None and control.accepts is not None:
                checked += 1
                assert not control.accepts.refuses(entry.value if isinstance(entry, Declared) else entry), name
    assert checked > 20


@pytest.mark.parametrize(
    ("accepts", "taken", "refused", "said"),
    [
        (Accepts(kind="truth"), [True, False], [1, "true", 0.0], "true or false"),
        (Accepts(kind="whole", least=1), [1, 10**9], [0, -1, 1.5, True, "4"], "a whole number at least 1"),
        (Accepts(kind="number", least=0, most=1), [0, 1, 0.9], [1.1, True, "0.9"], "a number at least 0 and at most 1"),
        (Accepts(kind="word", one_of=("u8", "f16")), ["u8", "F16"], ["q8_0", 8, True], "one of u8, f16"),
        (Accepts(kind="word"), ["anything"], [1, False], "a word"),
    ],
)
def test_what_a_control_takes(accepts: Accepts, taken: list[Scalar], refused: list[Scalar], said: str) -> None:
    assert accepts.said() == said
    assert [accepts.refuses(value) for value in taken] == [""] * len(taken)
    assert [accepts.refuses(value) for value in refused] == [said] * len(refused)


def test_a_claim_beside_one_that_is_not_there_is_found(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "knowledge")
    file = tmp_path / "knowledge" / "claims.yaml"
    file.write_text(file.read_text().replace("beside: [claim.drafts-half-to-double]", "beside: [claim.gone]"))
    with pytest.raises(
        InputError, match=r"claim\.drafts-two-to-three: beside: is 'claim.gone'; expected an id of claims\.yaml"
    ):
        load_knowledge(tmp_path / "knowledge")
