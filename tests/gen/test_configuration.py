"""A decision written in the words of its runtime: each fragment is read back by that runtime's own reader."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gen.changes import propose
from gen.configuration import configurations, of_record
from gen.contract import standing
from gen.findings import Rule
from gen.knowledge.schema import Engine
from gen.knowledge.spelling import Fragment, Place, fragments
from gen.pages import records, rules
from gen.pages.atlas import Atlas
from gen.records import Record, parse_record
from gen.words import Decision, Status
from probes import strictyaml
from probes.archive import seal
from probes.declared import llamacpp, ollama, ovms, vllm
from probes.declared.entry import Reading
from probes.declared.graph import read_graph
from probes.declared.launch import Launch, Word
from probes.evidence import FleetScope, Scalar, Technique
from probes.fleet import Declared, EmbeddedSettings
from tests.gen import compared
from tests.gen.compared import two_sides
from tests.gen.ledger import NOVEMBER, inventory, knowledge, ledger
from tests.gen.specimens import FINGERPRINT, endpoint_run, micro_run

VALUES: dict[Engine, dict[str, tuple[Scalar, ...]]] = {
    Engine.OVMS: {
        "max_num_seqs": (32,),
        "max_num_batched_tokens": (4096,),
        "dynamic_split_fuse": (True, False),
        "pipeline_type": ("LM_CB", "AUTO"),
        "enable_prefix_caching": (True, False),
        "cache_interval_multiplier": (16,),
        "cache_size": (0, 4),
        "KV_CACHE_PRECISION": ("u8", "u4"),
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": (32,),
        "prompt_lookup": (True, False),
        "sparse_attention_config": ("XATTENTION", "TRISHAPE"),
        "draft_models_path": ("/models/draft", "it's a \\ path"),
        "draft_device": ("GPU.1",),
        "draft_max_num_batched_tokens": (512,),
        "draft_cache_size": (1,),
        "draft_block_size": (16,),
        "draft_max_num_seqs": (4,),
        "draft_dynamic_split_fuse": (False,),
        "draft_eagle3_mode": (True, False),
        "draft_source_model": ("org/model",),
        "rest_workers": (4,),
    },
    Engine.LLAMACPP: {
        "parallel": (8,),
        "cont_batching": (True, False),
        "batch_size": (2048,),
        "ubatch_size": (512,),
        "n_ctx": (8192,),
        "kv_offload": (True, False),
        "cache_type_k": ("q8_0",),
        "cache_type_v": ("q8_0",),
        "flash_attn": ("on", "off", "auto"),
        "cache_prompt": (True, False),
        "cache_reuse": (256,),
        "cache_ram": (4096,),
        "spec_type": ("draft-simple",),
        "draft_model": ("/models/it's a draft.gguf",),
    },
    Engine.VLLM: {
        "enable_prefix_caching": (True, False),
        "kv_cache_dtype": ("fp8",),
        "weight_precision": ("awq",),
        "max_num_seqs": (128,),
        "max_num_batched_tokens": (8192,),
        "gpu_memory_utilization": (0.85,),
        "attention_backend": ("FLASH_ATTN",),
    },
    Engine.OLLAMA: {
        "OLLAMA_NUM_PARALLEL": (4,),
        "OLLAMA_MAX_QUEUE": (256,),
        "OLLAMA_MAX_LOADED_MODELS": (2,),
        "OLLAMA_FLASH_ATTENTION": (True, False),
        "OLLAMA_KV_CACHE_TYPE": ("q8_0",),
        "OLLAMA_CONTEXT_LENGTH": (16384,),
        "OLLAMA_KEEP_ALIVE": ("10m",),
        "OLLAMA_GPU_OVERHEAD": (1073741824,),
        "num_ctx": (8192,),
        "draft_num_predict": (4,),
        "draft_model": ("./draft.gguf",),
    },
    Engine.OPENVINO_GENAI: {
        "KV_CACHE_PRECISION": ("u8",),
        "enable_prefix_caching": (True, False),
        "max_num_seqs": (8,),
        "max_num_batched_tokens": (256,),
        "cache_size": (1,),
        "dynamic_split_fuse": (False,),
    },
}
CASES = [
    (engine, setting, value)
    for engine, settings in VALUES.items()
    for setting, values in settings.items()
    for value in values
]  # fmt: skip
LAUNCHES = {Engine.OVMS: ovms.read_launch, Engine.LLAMACPP: llamacpp.read_launch, Engine.VLLM: vllm.read_launch}
GRAPH = """
input_stream: "HTTP_REQUEST_PAYLOAD:input"
output_stream: "HTTP_RESPONSE_PAYLOAD:output"
node: {{
  name: "LLMExecutor"
  calculator: "HttpLLMCalculator"
  input_stream: "HTTP_REQUEST_PAYLOAD:input"
  output_stream: "HTTP_RESPONSE_PAYLOAD:output"
  {fragment}
}}
"""


def words(text: str) -> tuple[Word, ...]:
    return tuple(Word(text=word, where="command") for word in shlex.split(text))


def read_back(engine: Engine, fragment: Fragment) -> Reading | dict[str, Any]:
    """Read a fragment with the reader of its place, beside no more than the program requires."""
    if fragment.place is Place.GRAPH:
        required = fragment.text.replace("Options]: {", 'Options]: {\n    models_path: "./"', 1)
        return read_graph(GRAPH.format(fragment=required), "graph.pbtxt", None)
    if fragment.place is Place.COMMAND_LINE:
        task = "--task text_generation " if engine is Engine.OVMS else ""
        return LAUNCHES[engine](Launch(words=words(task + fragment.text.replace("\n", " "))), None)
    if fragment.place is Place.ENVIRONMENT:
        (assignment,) = shlex.split(fragment.text)
        name, _, value = assignment.partition("=")
        return ollama.read_launch(Launch(words=(), environment={name: Word(text=value, where="unit")}), None)
    if fragment.place is Place.MODELFILE:
        return ollama.read_modelfile(f"FROM ./model.gguf\n{fragment.text}\n", "Modelfile")
    lines = "\n".join(line.strip() for line in fragment.text.split("\n")[2:])
    return strictyaml.loads(lines, EmbeddedSettings, "fleet.yml").model_dump(by_alias=True, exclude_none=True)


def value_in(found: Reading | dict[str, Any], setting: str) -> Scalar:
    if isinstance(found, dict):
        return found[setting]  # type: ignore[no-any-return]
    (entry,) = [one for one in found.entries if one.control == setting and not one.default_of]
    return entry.value


def test_every_spelling_is_tried() -> None:
    for engine, dialect in knowledge().dialects.items():
        if engine is not Engine.LMSTUDIO:
            assert {one.setting for one in dialect.spellings} == set(VALUES[engine])


@pytest.mark.parametrize(("engine", "setting", "value"), CASES)
def test_what_is_written_is_what_the_runtime_reads(engine: Engine, setting: str, value: Scalar) -> None:
    written = fragments(knowledge().dialects[engine], {setting: value})
    assert written
    for fragment in written:
        assert value_in(read_back(engine, fragment), setting) == value


@pytest.mark.parametrize("engine", [Engine.OVMS, Engine.LLAMACPP, Engine.VLLM])
def test_all_settings_at_once_are_one_valid_configuration(engine: Engine) -> None:
    values = {setting: values[0] for setting, values in VALUES[engine].items()}
    for fragment in fragments(knowledge().dialects[engine], values):
        found = read_back(engine, fragment)
        for setting, value in values.items():
            spelled = knowledge().dialects[engine].spelling(setting)
            assert spelled is not None
            there = (spelled.graph or spelled.plugin) if fragment.place is Place.GRAPH else (spelled.flag or spelled.plugin)
            if there:
                assert value_in(found, setting) == value


@given(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=40))
def test_no_text_breaks_out_of_its_quotes(value: str) -> None:
    for fragment in fragments(knowledge().dialects[Engine.OVMS], {"draft_models_path": value}):
        assert value_in(read_back(Engine.OVMS, fragment), "draft_models_path") == value
    for fragment in fragments(knowledge().dialects[Engine.LLAMACPP], {"draft_model": value}):
        if not value.startswith("-"):
            assert value_in(read_back(Engine.LLAMACPP, fragment), "draft_model") == value


def test_a_plugin_config_keeps_what_it_holds_beside() -> None:
    beside = {"DYNAMIC_QUANTIZATION_GROUP_SIZE": 32, "max_num_seqs": 16}
    written = fragments(knowledge().dialects[Engine.OVMS], {"KV_CACHE_PRECISION": "u4"}, beside)
    graph = next(one for one in written if one.place is Place.GRAPH)
    found = read_back(Engine.OVMS, graph)
    assert value_in(found, "KV_CACHE_PRECISION") == "u4"
    assert value_in(found, "DYNAMIC_QUANTIZATION_GROUP_SIZE") == 32
    assert "max_num_seqs" not in graph.text


def test_a_setting_without_a_former_value_is_taken_out_again() -> None:
    (graph, line) = fragments(knowledge().dialects[Engine.OVMS], {"enable_prefix_caching": None})
    assert (graph.text, graph.removed) == ("", ("enable_prefix_caching",))
    assert (line.place, line.removed) == (Place.COMMAND_LINE, ("enable_prefix_caching",))


def test_lm_studio_is_set_on_its_screen() -> None:
    (written,) = fragments(knowledge().dialects[Engine.LMSTUDIO], {"parallel": 2})
    assert written.place is Place.SCREEN
    assert written.text == "max concurrent predictions in the load settings of the model: 2"


def off(value: bool = False) -> dict[str, Any]:
    services = dict(inventory().services)
    settings = {**services["text-4b"].settings, "enable_prefix_caching": Declared(value=value, as_of=NOVEMBER)}
    services["text-4b"] = services["text-4b"].model_copy(update={"settings": settings})
    return {"fleet": inventory().model_copy(update={"services": services})}


def drafted(corpus: Any, technique: Technique = Technique.PREFIX_CACHING) -> Record:
    found = next(one for one in propose(corpus, NOVEMBER, "fleet") if one.technique is technique)
    return parse_record(found.name, found.text, found.path)


def test_a_decision_to_enable_is_exported_with_the_way_back() -> None:
    corpus = ledger(**off())
    record = drafted(corpus)
    assert record.decision is Decision.ENABLE
    (found,) = of_record(corpus, record)
    assert (found.service, found.engine) == ("text-4b", Engine.OVMS)
    (change,) = found.changes
    assert (change.control, change.before, change.after) == ("enable_prefix_caching", False, True)
    for forth, back in zip(found.forth, found.back, strict=True):
        assert value_in(read_back(Engine.OVMS, forth), "enable_prefix_caching") is True
        assert value_in(read_back(Engine.OVMS, back), "enable_prefix_caching") is False
    assert "## How to carry it out" in record.body
    assert "enable_prefix_caching: true" in record.body
    assert "--enable_prefix_caching false" in record.body.partition("## How to roll back")[2]


def test_a_declaration_that_moved_is_exported_from_what_it_was_to_what_it_is() -> None:
    before = drafted(ledger())
    stood = before.model_copy(update={"status": Status.ACCEPTED})
    bound = dict(inventory().services)
    settings = {**bound["text-4b"].settings, "max_num_seqs": Declared(value=8, as_of=NOVEMBER)}
    bound["text-4b"] = bound["text-4b"].model_copy(update={"settings": settings})
    batching = drafted(ledger(), Technique.CONTINUOUS_BATCHING)
    accepted = batching.model_copy(update={"status": Status.ACCEPTED})
    corpus = ledger(stood, accepted, fleet=inventory().model_copy(update={"services": bound}))
    record = drafted(corpus, Technique.CONTINUOUS_BATCHING)
    (found,) = of_record(corpus, record)
    (change,) = found.changes
    assert (change.control, change.before, change.after) == ("max_num_seqs", 16, 8)
    assert "--max_num_seqs 16" in record.body.partition("## How to roll back")[2]
    assert record.decision is Decision.KEEP
    assert "- Changed since the record in force, on text-4b: max_num_seqs: 16 → 8." in record.body
    assert "Nothing is left to do: it was declared or seen so since the record in force." in record.body
    assert "No setting changes" not in record.body


def test_what_the_candidate_of_a_cited_comparison_had_is_what_is_set() -> None:
    run = two_sides(scope=FleetScope(service="text-4b"))
    corpus = ledger(runs=(run,), **off())
    record = drafted(corpus)
    assert record.assessment is not None
    (found,) = configurations(corpus, record.assessment, None, [run])
    assert f"the candidate of {run.id} has it" in found.changes[0].why
    assert record.contract == standing([run], inventory().policies.gates)


def test_a_record_of_what_stands_changes_nothing() -> None:
    corpus = ledger()
    assert of_record(corpus, drafted(corpus)) == ()
    assert "How to carry it out" not in drafted(corpus).body


def test_a_machine_that_is_not_here_gives_no_configuration() -> None:
    record = drafted(ledger(**off()))
    assert record.assessment is not None
    elsewhere = record.assessment.model_copy(update={"scope": "local-fedcba987654"})
    assert configurations(ledger(), elsewhere, None, ()) == ()
    assert of_record(replace(ledger()), record.model_copy(update={"assessment": None})) == ()


def test_a_record_page_shows_what_its_body_does_not_tell() -> None:
    corpus = ledger(**off())
    told = drafted(corpus)
    silent = told.model_copy(update={"body": "# Mine\n\nOwn words."})
    for record, shown in ((told, False), (silent, True)):
        atlas = Atlas(corpus=replace(corpus, records=(record,)), today=NOVEMBER)
        page = next(one.render() for one in records.pages(atlas) if one.path == atlas.record_paths[record.name])
        section = page.partition("Configuration { #configuration }")[2]
        assert f"nox -s adr -- config {record.name}" in section
        assert ("enable_prefix_caching: true" in section) == shown
        assert ("--enable_prefix_caching false" in section) == shown


def test_the_page_of_rules_lists_each_once_and_says_how_to_mend_it() -> None:
    (page,) = rules.pages(Atlas(corpus=ledger(), today=NOVEMBER))
    written = page.render()
    for rule in Rule:
        assert written.count(f">{rule.number}<") == 1
        assert f'id="{rule.number.lower()}"' in written


def test_what_is_measured_on_a_machine_of_its_own_is_written_for_its_embedded_service() -> None:
    seen = compared.setting("enable_prefix_caching", value=False)
    asked = seal(endpoint_run().model_copy(update={"settings": (seen,)}))
    embedded = inventory().embedded
    embedded = embedded.model_copy(update={"settings": {**embedded.settings, "enable_prefix_caching": False}})
    fleet = inventory().model_copy(update={"embedded": embedded})
    corpus = ledger(local_runs=(asked, micro_run()), fleet=fleet)
    found = next(one for one in propose(corpus, NOVEMBER, f"local-{FINGERPRINT}") if one.technique is Technique.PREFIX_CACHING)
    record = parse_record(found.name, found.text, found.path)
    assert record.decision is Decision.ENABLE
    (one,) = of_record(corpus, record)
    (forth,), (back,) = one.forth, one.back
    assert forth.place is Place.INVENTORY
    assert value_in(read_back(Engine.OPENVINO_GENAI, forth), "enable_prefix_caching") is True
    assert value_in(read_back(Engine.OPENVINO_GENAI, back), "enable_prefix_caching") is False
