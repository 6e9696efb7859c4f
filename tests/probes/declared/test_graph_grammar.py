"""Every kind of graph.pbtxt that the grammar notes name, with what becomes of it.

The accepted ones were parsed with protobuf and the message of llm_calculator.proto, the refused ones refused by it; the
examples stand in model_server @7e4df0c7: demos/continuous_batching, src/test/llm.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.evidence import Scalar
from tests.declaring import OPTIONS_LINE, by_default, declare, graph, refusal, told

NAME = "[type.googleapis.com / mediapipe.LLMCalculatorOptions]:"
TWO: dict[str, Scalar] = {"max_num_seqs": 16, "cache_size": 2}
EVICTION = "start_size 32, recent_size 128, max_cache_size 672"

# Nine kinds that are taken: the way of writing, and what it comes to in each of its spellings.
TAKEN: dict[str, tuple[dict[str, Scalar], tuple[str, ...]]] = {
    "comma, newline or space between fields": (
        TWO,
        ("max_num_seqs: 16, cache_size: 2", "max_num_seqs: 16\ncache_size: 2", "max_num_seqs: 16 cache_size: 2"),
    ),
    "one trailing comma before the brace": (TWO, ("max_num_seqs: 16, cache_size: 2,", "max_num_seqs: 16\ncache_size: 2,\n")),
    "true, True or 1 for a bool": (
        {"enable_prefix_caching": True},
        ("enable_prefix_caching: true", "enable_prefix_caching: True", "enable_prefix_caching: 1"),
    ),
    "an enum by name or by number": ({"pipeline_type": "LM_CB"}, ("pipeline_type: LM_CB", "pipeline_type: 2")),
    "a message with or without colon": (
        {"cache_eviction_config": EVICTION},
        tuple(f"cache_eviction_config{colon} {{start_size: 32 recent_size: 128 max_cache_size: 672}}" for colon in (":", "")),
    ),
    "an empty message": (
        {"sparse_attention_config": "TRISHAPE"},
        ("sparse_attention_config {}", "sparse_attention_config: {}", "sparse_attention_config: { }"),
    ),
    "comments inside the block": (
        TWO,
        ("max_num_seqs: 16 # of 256\ncache_size: 2", "# cache_size: 9\nmax_num_seqs: 16\n# max_num_seqs: 1\ncache_size: 2"),
    ),
    "no space after a colon": (TWO, ("max_num_seqs:16,cache_size:2",)),
    "the name of the options with or without spaces and colon": (
        TWO,
        tuple(
            f"max_num_seqs: 16 cache_size: 2 # {name}"
            for name in (
                NAME,
                "[type.googleapis.com / mediapipe.LLMCalculatorOptions]",
                "[type.googleapis.com/mediapipe.LLMCalculatorOptions]:",
                "[type.googleapis.com/mediapipe.LLMCalculatorOptions]",
            )
        ),
    ),
}
REFUSED = {
    "a double comma": ("max_num_seqs: 16,, cache_size: 2", "refused by protobuf at ','"),
    "TRUE": ("enable_prefix_caching: TRUE", "enable_prefix_caching: is refused by protobuf at 'TRUE'"),
    "an enum in quotes": ('pipeline_type: "LM_CB"', "pipeline_type: is refused by protobuf"),
    "an unknown field": ("max_num_sequences: 16", "max_num_sequences: is not a field of mediapipe.LLMCalculatorOptions"),
    "a singular field given twice": ("cache_size: 1 cache_size: 2", "cache_size"),
    "plugin_config as a bare object": ('plugin_config: {"KV_CACHE_PRECISION": "u8"}', "plugin_config: is refused by protobuf"),
}


def _named(options: str) -> str:
    """Write a graph whose options have the name that a comment at their end asks for."""
    text, _, name = options.partition(" # [")
    return graph(text).replace(NAME, f"[{name}") if name else graph(options)


@pytest.mark.parametrize(("kind", "options"), [(kind, one) for kind, (_, written) in TAKEN.items() for one in written])
def test_a_kind_that_protobuf_takes_is_read(tmp_path: Path, kind: str, options: str) -> None:
    text = _named(options)
    assert told(declare(tmp_path, "graph.pbtxt", text)) == TAKEN[kind][0]


def test_nine_kinds_are_named() -> None:
    assert len(TAKEN) == 9


@pytest.mark.parametrize("kind", REFUSED)
def test_a_kind_that_protobuf_refuses_is_told_with_file_line_field_and_value(tmp_path: Path, kind: str) -> None:
    options, expected = REFUSED[kind]
    said = refusal(tmp_path, "graph.pbtxt", graph(options))
    assert said.startswith(f"graph.pbtxt:{OPTIONS_LINE}: ")
    assert expected in said


def test_a_required_field_that_is_missing_is_told_although_parsing_alone_does_not(tmp_path: Path) -> None:
    said = refusal(tmp_path, "graph.pbtxt", graph("max_num_seqs: 1").replace('models_path: "./"', ""))
    assert "models_path: is missing" in said


@pytest.mark.parametrize("empty", ["''", '""', "'{}'", "'{ }'"])
def test_a_plugin_config_without_anything_in_it_says_nothing(tmp_path: Path, empty: str) -> None:
    assert told(declare(tmp_path, "graph.pbtxt", graph(f"plugin_config: {empty}"))) == {}


GPU_DEMO = """
    plugin_config: '{}',
    dynamic_split_fuse: false,
    max_num_seqs: 256,
    max_num_batched_tokens:8192,
    cache_size: 0,
    device: "GPU"
"""
SPECULATIVE_TEST = """
  cache_size: 1
  plugin_config: '{"INFERENCE_PRECISION_HINT": "f32"}'
  draft_models_path: "/ovms/src/test/llm_testing/facebook/opt-125m"
"""
CPU_DEMO = """plugin_config: '{"KV_CACHE_PRECISION": "u8", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "32"}',"""
PROMPT_LOOKUP_TEST = """plugin_config: '{"prompt_lookup": true, "INFERENCE_PRECISION_HINT": "f32"}'"""
EVICTION_TEST = (
    "cache_eviction_config: {start_size: 32, recent_size: 128, max_cache_size: 672, aggregation_mode: NORM_SUM, "
    "apply_rotation: true}"
)
XATTENTION_TEST = """sparse_attention_config: {
  mode: XATTENTION
  xattention_threshold: 0.8
  xattention_block_size: 64
  xattention_stride: 8
}"""


@pytest.mark.parametrize(
    ("options", "values"),
    [
        (GPU_DEMO, {"dynamic_split_fuse": False, "max_num_seqs": 256, "max_num_batched_tokens": 8192, "cache_size": 0}),
        (CPU_DEMO, {"KV_CACHE_PRECISION": "u8", "DYNAMIC_QUANTIZATION_GROUP_SIZE": 32}),
        (SPECULATIVE_TEST, {"cache_size": 1, "draft_models_path": "/ovms/src/test/llm_testing/facebook/opt-125m"}),
        (PROMPT_LOOKUP_TEST, {"prompt_lookup": True}),
        (
            EVICTION_TEST,
            {"cache_eviction_config": f"aggregation_mode NORM_SUM, {EVICTION}, apply_rotation True"},
        ),
        (XATTENTION_TEST, {"sparse_attention_config": "XATTENTION"}),
    ],
    ids=["gpu demo", "cpu demo", "speculative", "prompt lookup", "eviction", "xattention"],
)
def test_the_graphs_of_the_servers_own_demos_and_tests_are_read(
    tmp_path: Path, options: str, values: dict[str, Scalar]
) -> None:
    reading = declare(tmp_path, "graph.pbtxt", graph(options))
    assert told(reading) == values
    assert by_default(reading)["enable_prefix_caching"] is False
