"""graph.pbtxt: the grammar that OVMS takes, the comment that it reads, and what an absent field means."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from probes.declared.graph import read_graph
from probes.errors import InputError
from probes.evidence import Scalar, Technique
from tests.declaring import GRAPH, OPTIONS_LINE, by_default, declare, entry, graph, refusal, told

SEPARATORS = (" ", "\n", ", ", ";\n", "\n# comment\n", " # max_num_seqs: 1\n")
DEFAULTS: dict[str, Scalar] = {
    "max_num_seqs": 256,
    "max_num_batched_tokens": 256,
    "dynamic_split_fuse": True,
    "pipeline_type": "AUTO",
    "enable_prefix_caching": False,
    "cache_size": 0,
}


@pytest.mark.parametrize(
    ("options", "control", "value"),
    [
        ("max_num_seqs: 16, cache_size: 2", "cache_size", 2),
        ("max_num_seqs: 16\n cache_size: 2", "cache_size", 2),
        ("max_num_seqs: 16 cache_size: 2", "cache_size", 2),
        ("max_num_seqs: 16; cache_size: 2;", "cache_size", 2),
        ("cache_size: 2,", "cache_size", 2),
        ("enable_prefix_caching: true", "enable_prefix_caching", True),
        ("enable_prefix_caching: True", "enable_prefix_caching", True),
        ("enable_prefix_caching: 1", "enable_prefix_caching", True),
        ("enable_prefix_caching: t", "enable_prefix_caching", True),
        ("enable_prefix_caching: False", "enable_prefix_caching", False),
        ("pipeline_type: LM_CB", "pipeline_type", "LM_CB"),
        ("pipeline_type: 2", "pipeline_type", "LM_CB"),
        ("cache_eviction_config: {start_size: 32, recent_size: 128, max_cache_size: 672, apply_rotation: true}",
         "cache_eviction_config", "start_size 32, recent_size 128, max_cache_size 672, apply_rotation True"),
        ("cache_eviction_config {start_size: 32 recent_size: 128 max_cache_size: 672 aggregation_mode: SUM}",
         "cache_eviction_config", "aggregation_mode SUM, start_size 32, recent_size 128, max_cache_size 672"),
        ("cache_eviction_config < start_size: 1 recent_size: 2 max_cache_size: 3 >",
         "cache_eviction_config", "start_size 1, recent_size 2, max_cache_size 3"),
        ("sparse_attention_config {}", "sparse_attention_config", "TRISHAPE"),
        ("sparse_attention_config: { mode: XATTENTION xattention_threshold: 0.8f }", "sparse_attention_config", "XATTENTION"),
        ("# max_num_seqs: 1\n max_num_seqs: 16 # of 256", "max_num_seqs", 16),
        ("max_num_batched_tokens:8192", "max_num_batched_tokens", 8192),
        ("max_num_seqs: 0x10", "max_num_seqs", 16),
        ("max_num_seqs: 020", "max_num_seqs", 16),
        ("plugin_config: '{\"KV_CACHE_' \"PRECISION\\\": \\\"u8\\\"}\"", "KV_CACHE_PRECISION", "u8"),
        ("draft_models_path: '\\x64raft'", "draft_models_path", "draft"),
        ("draft_models_path: 'd' draft_eagle3_mode: True", "draft_eagle3_mode", True),
        ("plugin_config: '{\"prompt_lookup\": true}'", "prompt_lookup", True),
    ],
)  # fmt: skip
def test_what_protobuf_takes_is_taken(tmp_path: Path, options: str, control: str, value: Scalar) -> None:
    assert told(declare(tmp_path, "graph.pbtxt", graph(options)))[control] == value


@pytest.mark.parametrize(
    "separator",
    ["[type.googleapis.com/mediapipe.LLMCalculatorOptions]", "[ type.googleapis.com / mediapipe.LLMCalculatorOptions ]:"],
)
def test_the_name_of_the_options_may_have_spaces_and_a_colon(tmp_path: Path, separator: str) -> None:
    text = graph("max_num_seqs: 3").replace("[type.googleapis.com / mediapipe.LLMCalculatorOptions]:", separator)
    assert entry(declare(tmp_path, "graph.pbtxt", text), "max_num_seqs").where == f"graph.pbtxt:{OPTIONS_LINE}"


@pytest.mark.parametrize(
    ("options", "line", "expected"),
    [
        ("max_num_seqs: 16,, cache_size: 2", 0, "refused by protobuf"),
        ("enable_prefix_caching: TRUE", 0, "TRUE"),
        ("pipeline_type: \"LM\"", 0, "refused by protobuf"),
        ("\n\nmax_num_seq: 16", 2, "max_num_seq: is not a field of mediapipe.LLMCalculatorOptions"),
        ("max_num_seqs: 16\nmax_num_seqs: 8", 1, "max_num_seqs"),
        ("plugin_config: { KV_CACHE_PRECISION: 'u8' }", 0, "refused by protobuf"),
        ("max_num_seqs: -1", 0, "refused by protobuf"),
        ("max_num_seqs: 'sixteen'", 0, "refused by protobuf"),
        ("pipeline_type: FAST", 0, "FAST"),
        ("device: \"GPU", 0, "refused by protobuf"),
        ("cache_eviction_config { start_size: 1 }", None, "recent_size: is missing"),
    ],
)  # fmt: skip
def test_what_protobuf_refuses_is_refused_with_its_line(tmp_path: Path, options: str, line: int | None, expected: str) -> None:
    said = refusal(tmp_path, "graph.pbtxt", graph(options))
    assert expected in said
    assert said.startswith("graph.pbtxt" if line is None else f"graph.pbtxt:{OPTIONS_LINE + line}")


def test_a_model_is_required(tmp_path: Path) -> None:
    said = refusal(tmp_path, "graph.pbtxt", GRAPH.replace("OPTIONS\n", "max_num_seqs: 1\n"))
    assert said == ("graph.pbtxt: models_path: is missing; expected a value: mediapipe.LLMCalculatorOptions requires it")


def test_an_absent_field_means_the_default_of_the_message_and_its_release(tmp_path: Path) -> None:
    reading = declare(tmp_path, "graph.pbtxt", graph())
    assert (told(reading), by_default(reading)) == ({}, DEFAULTS)
    assert {one.default_of for one in reading.entries} == {"OVMS 2026.2"}


@pytest.mark.parametrize(
    ("version", "whose"),
    [
        (None, "OVMS 2025.4 to 2026.3"),
        ("2025.4", "OVMS 2025.4"),
        ("2026.3.1", "OVMS 2026.3.1"),
        ("2026.4", "OVMS 2026.3, not checked for 2026.4"),
        ("2024.6", "OVMS 2026.3, not checked for 2024.6"),
    ],
)
def test_a_default_says_for_which_release_it_was_looked_up(tmp_path: Path, version: str | None, whose: str) -> None:
    assert {one.default_of for one in declare(tmp_path, "graph.pbtxt", graph(), version=version).entries} == {whose}


def test_a_field_of_a_release_that_nobody_has_looked_at_is_named_and_ends_nothing(tmp_path: Path) -> None:
    options = "max_num_seqs: 3 tree_depth: 4 something { a: 1 } cache_size: 2"
    reading = declare(tmp_path, "graph.pbtxt", graph(options), version="2026.5")
    assert told(reading) == {"max_num_seqs": 3, "cache_size": 2}
    assert reading.unread == ("tree_depth", "something")
    for version in ("2026.3.1", "2026.3", "2025.4", None):
        assert "tree_depth: is not a field of" in refusal(tmp_path, "graph.pbtxt", graph(options), version=version)
    assert "refused by protobuf" in refusal(tmp_path, "graph.pbtxt", graph("max_num_seqs: -1"), version="2026.5")


def test_an_option_in_a_comment_or_a_string_is_none(tmp_path: Path) -> None:
    """F130: a # inside quotes begins no comment."""
    options = "# enable_prefix_caching: true\n draft_models_path: './#enable_prefix_caching: true'"
    reading = declare(tmp_path, "graph.pbtxt", graph(options))
    assert told(reading) == {"draft_models_path": "./#enable_prefix_caching: true"}
    assert by_default(reading)["enable_prefix_caching"] is False


def test_comments_that_are_configuration_are_kept(tmp_path: Path) -> None:
    """F129: OVMS reads one of them, and the other tells who wrote the file."""
    header = "# File created with: OpenVINO Model Server 2026.2.1\n# OVMS_GRAPH_QUEUE_MAX_SIZE: AUTO\n"
    reading = declare(tmp_path, "graph.pbtxt", header + graph())
    queue = entry(reading, "OVMS_GRAPH_QUEUE_MAX_SIZE")
    assert (queue.value, queue.where, queue.technique) == ("AUTO", "graph.pbtxt:2", Technique.CONTINUOUS_BATCHING)
    assert reading.facts["created_with"] == "OpenVINO Model Server 2026.2.1"


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("#OVMS_GRAPH_QUEUE_MAX_SIZE:4", 4),
        ("   #  OVMS_GRAPH_QUEUE_MAX_SIZE : 0  ", 0),
        ("x # OVMS_GRAPH_QUEUE_MAX_SIZE: 4", None),
    ],
)
def test_the_directive_begins_its_line(tmp_path: Path, line: str, value: int | None) -> None:
    text = graph(f"max_num_seqs: 1\n{line.replace('x ', 'cache_size: 1 ')}")
    assert told(declare(tmp_path, "graph.pbtxt", text)).get("OVMS_GRAPH_QUEUE_MAX_SIZE") == value


def test_a_directive_that_ovms_refuses_is_refused(tmp_path: Path) -> None:
    said = refusal(tmp_path, "graph.pbtxt", f"# OVMS_GRAPH_QUEUE_MAX_SIZE: -1\n{graph()}")
    assert said == "graph.pbtxt:1: OVMS_GRAPH_QUEUE_MAX_SIZE: is '-1'; expected AUTO, 0 or a whole number above it"


@pytest.mark.parametrize(
    ("plugin", "expected"),
    [
        ("", {}),
        ("{}", {}),
        ("{ }", {}),
        ('{"KV_CACHE_PRECISION":"f16" }', {"KV_CACHE_PRECISION": "f16"}),
        ('{"KV_CACHE_PRECISION":"U8", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "32"}',
         {"KV_CACHE_PRECISION": "U8", "DYNAMIC_QUANTIZATION_GROUP_SIZE": 32}),
        ('{"DEVICE_PROPERTIES": {"GPU": {"KV_CACHE_PRECISION": "u8"}}}', {"KV_CACHE_PRECISION": "u8"}),
        ('{"KV_CACHE_PRECISION": "f16", "DEVICE_PROPERTIES": {"GPU": {"KV_CACHE_PRECISION": "u8"}, "CPU": {}}}',
         {"KV_CACHE_PRECISION": "u8"}),
        ('{"DEVICE_PROPERTIES": {"CPU": {"KV_CACHE_PRECISION": "u8"}}}', {}),
        ('{"DEVICE_PROPERTIES": {"GPU.0": {"KV_CACHE_PRECISION": "u8"}, "GPU.1": {"KV_CACHE_PRECISION": "f16"}}}',
         {"KV_CACHE_PRECISION": "u8"}),
        ('{"CACHE_DIR": "/var/secret"}', {}),
    ],
)  # fmt: skip
def test_plugin_config_is_json_in_a_string(tmp_path: Path, plugin: str, expected: dict[str, Scalar]) -> None:
    """F132."""
    reading = declare(tmp_path, "graph.pbtxt", graph(f"device: 'GPU.0' plugin_config: '{plugin}'"))
    assert told(reading) == expected
    assert "/var/secret" not in repr(reading)


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        ("GPU", "u8"), ("GPU.0", "u8"), ("GPU.1", "f16"), ("gpu.1", "f16"), ("CPU", "u8"), ("NPU", None), ("", None),
        ("AUTO:GPU.1", "f16"), ("AUTO:GPU.0,CPU", "u8"), ("HETERO:GPU.1,CPU", None),
    ],
)  # fmt: skip
def test_a_property_of_a_device_is_that_of_the_device_that_serves(tmp_path: Path, device: str, expected: str | None) -> None:
    """F132: where two devices serve and differ, no single value holds."""
    each = (
        '{"GPU.0": {"KV_CACHE_PRECISION": "u8"}, "gpu.1": {"KV_CACHE_PRECISION": "f16"}, "CPU": {"KV_CACHE_PRECISION": "u8"}}'
    )
    options = f"device: '{device}' plugin_config: '{{\"DEVICE_PROPERTIES\": {each}}}'"
    assert told(declare(tmp_path, "graph.pbtxt", graph(options))).get("KV_CACHE_PRECISION") == expected


@pytest.mark.parametrize(
    ("plugin", "why"),
    [
        ("{KV_CACHE_PRECISION: u8}", "is not JSON"),
        ('"{\\\\"KV_CACHE_PRECISION\\\\": \\\\"u8\\\\"}"', "a JSON string, quoted once too often"),
        ("[]", "a JSON list"),
        ('{"KV_CACHE_PRECISION": "u8", "KV_CACHE_PRECISION": "f16"}', "twice"),
        ('{"KV_CACHE_PRECISION": NaN}', "not usable JSON"),
        ('{"KV_CACHE_PRECISION": {"a": 1}}', "KV_CACHE_PRECISION"),
        ("{} // none", "JSON has no comments"),
    ],
)
def test_a_plugin_config_that_is_no_json_object_is_told(tmp_path: Path, plugin: str, why: str) -> None:
    """F132: the message names the file and the line."""
    said = refusal(tmp_path, "graph.pbtxt", graph(f"plugin_config: '{plugin}'"))
    assert said.startswith(f"graph.pbtxt:{OPTIONS_LINE}")
    assert why in said
    assert "invalid plugin_config" in said or "KV_CACHE_PRECISION" in said


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("pipeline_type: LM", "LM pipeline"),
        ("pipeline_type: VLM", "VLM pipeline"),
        ("device: 'NPU'", "NPU runs the stateful pipeline"),
    ],
)
def test_options_that_the_pipeline_ignores_are_without_effect(tmp_path: Path, options: str, why: str) -> None:
    """F133: set, and not effective."""
    reading = declare(tmp_path, "graph.pbtxt", graph(f"{options} enable_prefix_caching: true"))
    switch = entry(reading, "enable_prefix_caching")
    assert (switch.value, switch.default_of, switch.without_effect) == (True, "", why)
    assert entry(reading, "pipeline_type").without_effect == ""


def test_options_of_a_draft_need_a_draft(tmp_path: Path) -> None:
    reading = declare(tmp_path, "graph.pbtxt", graph("draft_eagle3_mode: true"))
    assert entry(reading, "draft_eagle3_mode").without_effect == "no draft_models_path"


def test_a_pool_of_zero_stays_zero(tmp_path: Path) -> None:
    """F131: it means dynamic, which is for the pages to say."""
    reading = declare(tmp_path, "graph.pbtxt", graph("cache_size: 0"))
    assert (entry(reading, "cache_size").value, entry(reading, "cache_size").default_of) == (0, "")


@pytest.mark.parametrize("message", ["EmbeddingsCalculatorOVOptions", "RerankCalculatorOVOptions", "S2tCalculatorOptions"])
def test_graphs_without_a_text_generator_have_no_settings(tmp_path: Path, message: str) -> None:
    text = graph("target_device: 'GPU'").replace("LLMCalculatorOptions", message)
    reading = declare(tmp_path, "graph.pbtxt", text)
    assert reading.entries == ()
    assert reading.facts["target_device"] == "GPU"


def test_options_of_a_calculator_that_is_not_known_are_told(tmp_path: Path) -> None:
    said = refusal(tmp_path, "graph.pbtxt", graph().replace("LLMCalculatorOptions", "HomemadeCalculatorOptions"))
    assert said.startswith(f"graph.pbtxt:{OPTIONS_LINE - 1}: holds options of mediapipe.HomemadeCalculatorOptions")


def test_a_graph_with_two_text_generators_says_nothing_clear(tmp_path: Path) -> None:
    node = graph()[graph().index("node:") :]
    assert "holds 2 nodes" in refusal(tmp_path, "graph.pbtxt", graph() + node)


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_endings_and_byte_order_marks_change_nothing(tmp_path: Path, ending: str, mark: str) -> None:
    text = mark + graph("\nmax_num_seqs: 3").replace("\n", ending)
    assert entry(declare(tmp_path, "graph.pbtxt", text), "max_num_seqs").where == f"graph.pbtxt:{OPTIONS_LINE + 1}"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\x00\x01\x02", "zero byte"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"a" * (2**20 + 1), "bytes"),
        (b"node {" * 50_000, "nests deeper"),
        (b"options { [a.b] {" + b"x {" * 40 + b"}" * 42, None),
        (b"{", "refused by protobuf"),
        (b"node: " + b"9" * 10_000, "refused by protobuf"),
        (b"input_stream: '\\xff\\xfe'", "refused by protobuf"),
        (b"num_threads: " + b"1" * 5000, "refused by protobuf"),
        (b"", None),
    ],
)
def test_hostile_files_are_refused_with_a_message(tmp_path: Path, content: bytes, expected: str | None) -> None:
    if expected is None:
        assert declare(tmp_path, "graph.pbtxt", content).entries == ()
    else:
        assert expected in refusal(tmp_path, "graph.pbtxt", content)


@given(st.text(max_size=400))
def test_no_text_ends_in_a_traceback(text: str) -> None:
    with contextlib.suppress(InputError):
        assert read_graph(text, "graph.pbtxt", None).entries is not None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seqs=st.integers(0, 2**64 - 1),
    caching=st.booleans(),
    precision=st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=20),
    separators=st.lists(
        st.sampled_from([" ", "\n", ", ", ";\n", "\n# comment\n", " # max_num_seqs: 1\n"]), min_size=3, max_size=3
    ),
)
def test_values_come_back_however_they_are_separated(
    tmp_path: Path, seqs: int, caching: bool, precision: str, separators: list[str]
) -> None:
    plugin = json.dumps(json.dumps({"KV_CACHE_PRECISION": precision}))
    fields = [f"max_num_seqs: {seqs}", f"enable_prefix_caching: {str(caching).lower()}", f"plugin_config: {plugin}"]
    text = "\n" + "".join(field + separator for field, separator in zip(fields, separators, strict=True))
    reading = declare(tmp_path, "graph.pbtxt", graph(text))
    assert told(reading) == {"max_num_seqs": seqs, "enable_prefix_caching": caching, "KV_CACHE_PRECISION": precision}
    lines = (tmp_path / "graph.pbtxt").read_text().split("\n")
    for one in (one for one in reading.entries if not one.default_of):
        field = "plugin_config" if one.control == "KV_CACHE_PRECISION" else one.control
        line = int(one.where.rpartition(":")[2])
        assert lines[line - 1].split("#")[0].lstrip(" ,;").find(field) >= 0
