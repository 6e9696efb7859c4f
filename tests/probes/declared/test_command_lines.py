"""Command lines as they are written down: what they set, what they leave out, and what of them may be kept."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.declared.shell import commands
from probes.errors import InputError
from probes.evidence import Scalar
from probes.fleet import ConfigKind, RuntimeName
from tests.declaring import by_default, declare, entry, refusal, told

VLLM, LLAMACPP, OVMS, OLLAMA = RuntimeName.VLLM, RuntimeName.LLAMACPP, RuntimeName.OVMS, RuntimeName.OLLAMA


@pytest.mark.parametrize(
    ("runtime", "line", "expected"),
    [
        (VLLM, "vllm serve m --max-num-seqs 16 --max-num-batched-tokens=2048",
         {"max_num_seqs": 16, "max_num_batched_tokens": 2048}),
        (VLLM, "vllm serve m --max_num_seqs 16 --max-num-batched-tokens 8k",
         {"max_num_seqs": 16, "max_num_batched_tokens": 8000}),
        (VLLM, "vllm serve m --max-num-batched-tokens 8K", {"max_num_batched_tokens": 8192}),
        (VLLM, "vllm serve m --enable-prefix-caching --port 80", {"enable_prefix_caching": True}),
        (VLLM, "vllm serve m --no-enable-prefix-caching", {"enable_prefix_caching": False}),
        (VLLM, "vllm serve m --enable-prefix-caching=False", {"enable_prefix_caching": False}),
        (VLLM, "vllm serve m --enable-prefix-caching --no-enable-prefix-caching", {"enable_prefix_caching": False}),
        (VLLM, "vllm serve m --max-num-seqs 8 --max-num-seqs 16", {"max_num_seqs": 16}),
        (VLLM, "vllm serve m -q awq --kv-cache-dtype fp8", {"weight_precision": "awq", "kv_cache_dtype": "fp8"}),
        (VLLM, "python3 -m vllm.entrypoints.openai.api_server --gpu-memory-utilization .85", {"gpu_memory_utilization": 0.85}),
        (VLLM, "VLLM_ATTENTION_BACKEND=FLASHINFER vllm serve m", {"attention_backend": "FLASHINFER"}),
        (VLLM, "VLLM_ATTENTION_BACKEND=FLASHINFER vllm serve m --attention-backend FLASH_ATTN",
         {"attention_backend": "FLASH_ATTN"}),
        (VLLM, """vllm serve m --speculative-config '{"method": "eagle3", "model": "d"}'""",
         {"speculative_config": "configured"}),
        (VLLM, "vllm serve m --speculative-config.method mtp --speculative_config.num_speculative_tokens=2",
         {"speculative_config": "configured"}),
        (VLLM, """vllm serve m --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_both"}'""",
         {"kv_transfer_config": "NixlConnector as kv_both"}),
        (VLLM, "numactl --cpunodebind=0 --membind=0 vllm serve m --max-num-seqs 4", {"max_num_seqs": 4}),
        (VLLM, "cd /srv && exec vllm serve m --max-num-seqs 4 > log 2>&1", {"max_num_seqs": 4}),
        (VLLM, "docker run --rm --gpus all -e HF_TOKEN=x -p 80:80 vllm/vllm-openai:v0.11.0 --model m --max-num-seqs 4",
         {"max_num_seqs": 4}),
        (OLLAMA, "OLLAMA_NUM_PARALLEL=4 ollama serve &\nollama pull m", {"OLLAMA_NUM_PARALLEL": 4}),
        (VLLM, "vllm bench serve --max-num-seqs 1\nvllm serve m --max-num-seqs 2", {"max_num_seqs": 2}),
        (LLAMACPP, "llama-server -m m.gguf -np 2 -c 2048 -ctk q8_0 -ctv q8_0",
         {"parallel": 2, "n_ctx": 2048, "n_ctx_per_slot": 1024, "cache_type_k": "q8_0", "cache_type_v": "q8_0"}),
        (LLAMACPP, "./llama-server -m m.gguf -np 2 -c 2048 -kvu", {"parallel": 2, "n_ctx": 2048, "n_ctx_per_slot": 2048}),
        (LLAMACPP, "llama-server --parallel=3 --ctx-size 1000", {"parallel": 3, "n_ctx": 1000}),
        (LLAMACPP, "llama-server -fa", {"flash_attn": "on"}),
        (LLAMACPP, "llama-server -fa off -np 1", {"flash_attn": "off", "parallel": 1}),
        (LLAMACPP, "llama-server -fa -np 1", {"flash_attn": "on", "parallel": 1}),
        (LLAMACPP, "llama-server --flash-attn auto", {"flash_attn": "auto"}),
        (LLAMACPP, "llama-server -nocb --no-cache-prompt -nkvo",
         {"cont_batching": False, "cache_prompt": False, "kv_offload": False}),
        (LLAMACPP, "LLAMA_ARG_N_PARALLEL=4 llama-server -np 2", {"parallel": 2}),
        (LLAMACPP, "export LLAMA_ARG_N_PARALLEL=4\nllama-server", {"parallel": 4}),
        (LLAMACPP, "LLAMA_ARG_NO_CACHE_PROMPT=1 LLAMA_ARG_FLASH_ATTN=1 llama-server",
         {"cache_prompt": False, "flash_attn": "on"}),
        (LLAMACPP, "llama-server -md d.gguf --spec-type draft-simple", {"draft_model": "d.gguf", "spec_type": "draft-simple"}),
        (LLAMACPP, "SLOTS=4\nARGS=\"-np $SLOTS -c 4096\"\nllama-server $ARGS",
         {"parallel": 4, "n_ctx": 4096, "n_ctx_per_slot": 1024}),
        (LLAMACPP, "llama-server \\\n  -m m.gguf \\\n  # not this: -np 9\n", {}),
        (LLAMACPP, "cat <<EOF\nllama-server -np 9\nEOF\nllama-server -np 2", {"parallel": 2}),
        (LLAMACPP, "# llama-server -np 9\nllama-server '-np' \"2\"", {"parallel": 2}),
        (OVMS, "ovms --task text_generation --max_num_seqs 16 --cache_size=2 --kv_cache_precision u8 "
               "--enable_prefix_caching false",
         {"max_num_seqs": 16, "cache_size": 2, "KV_CACHE_PRECISION": "u8", "enable_prefix_caching": False}),
        (OVMS, "ovms --task text_generation --draft_source_model d --draft_eagle3_mode",
         {"draft_source_model": "d", "draft_eagle3_mode": True}),
        (OVMS, """ovms --model_path m --plugin_config '{"KV_CACHE_PRECISION": "u8"}'""", {"KV_CACHE_PRECISION": "u8"}),
        (OVMS, "ovms --task text_generation --kv_cache_precision=", {}),
        (OVMS, "docker run -d -u 1000 --device /dev/dri -v m:/m:ro openvino/model_server:2026.2-gpu --task text_generation "
               "--cache_size 4", {"cache_size": 4}),
    ],
)  # fmt: skip
def test_what_a_command_line_sets(tmp_path: Path, runtime: RuntimeName, line: str, expected: dict[str, Scalar]) -> None:
    assert told(declare(tmp_path, "start.sh", f"#!/bin/sh\n{line}\n", runtime)) == expected


@pytest.mark.parametrize(
    ("runtime", "line", "expected"),
    [
        (VLLM, "vllm serve m", {"enable_prefix_caching": True, "kv_cache_dtype": "auto"}),
        (VLLM, "vllm serve m --config c.yaml", {}),
        (VLLM, "vllm serve m $MORE", {}),
        (VLLM, "vllm serve m --kv-cache-dtype $KV", {}),
        (OVMS, "ovms --task text_generation",
         {"max_num_seqs": 256, "max_num_batched_tokens": 256, "dynamic_split_fuse": True, "pipeline_type": "AUTO",
          "enable_prefix_caching": True, "cache_size": 0}),
        (OVMS, "ovms --config_path config.json", {}),
        (OVMS, "ovms --task embeddings", {}),
        (LLAMACPP, "llama-server -md d.gguf",
         {"cont_batching": True, "cache_prompt": True, "cache_type_k": "f16", "cache_type_v": "f16", "flash_attn": "auto",
          "kv_offload": True}),
    ],
)  # fmt: skip
def test_what_it_leaves_out_has_the_command_lines_default(
    tmp_path: Path, runtime: RuntimeName, line: str, expected: dict[str, Scalar]
) -> None:
    """Where a word depends on something that is not known, nothing is known to be left out."""
    assert by_default(declare(tmp_path, "start.sh", line, runtime)) == expected


def test_the_default_of_the_command_line_is_not_that_of_the_graph(tmp_path: Path) -> None:
    """F131: prefix caching is off in a graph without the field and on at the command line."""
    switch = entry(declare(tmp_path, "start.sh", "ovms --task text_generation"), "enable_prefix_caching")
    assert (switch.value, switch.default_of) == (True, "OVMS command line 2026.2")


@pytest.mark.parametrize(
    ("runtime", "line", "expected"),
    [
        (VLLM, "vllm serve m \\\n --max-num-seqs four", "start.sh:2: --max-num-seqs: is 'four'; expected a whole number"),
        (VLLM, "vllm serve m --max-num-seqs", "start.sh:1: --max-num-seqs: ends the command; expected a whole number"),
        (VLLM, "vllm serve m --enable-prefix-caching=maybe", "expected true or false"),
        (VLLM, "vllm serve m --gpu-memory-utilization nan", "expected a number"),
        (VLLM, "vllm serve m --speculative-config '{method: x}'", "is not JSON"),
        (VLLM, "vllm serve m --kv-transfer-config '{}'", "names no kv_connector"),
        (LLAMACPP, "llama-server -ctk q3", "start.sh:1: -ctk: is 'q3'; expected one of f32, f16"),
        (LLAMACPP, "llama-server -np 2k", "expected a whole number"),
        (LLAMACPP, "LLAMA_ARG_N_PARALLEL=x llama-server", "start.sh:1: LLAMA_ARG_N_PARALLEL: is 'x'"),
        (LLAMACPP, "llama-server -np 'a", "start.sh:1: opens a quote (') that is never closed"),
        (LLAMACPP, "vllm serve m", "starts vllm; expected a command that runs llama-server"),
        (LLAMACPP, "echo llama-server -np 2", "starts no server that is known"),
        (LLAMACPP, "pkill llama-server", "starts no server that is known"),
        (LLAMACPP, "llama-server -np 1\nllama-server -np 2", "2 times (lines 1, 2)"),
        (OVMS, "ovms --task text_generation --cache_size 2G", "expected a whole number"),
        (OVMS, "ovms --plugin_config '{u8}'", "invalid plugin_config"),
        (RuntimeName.COMFYUI, "python main.py", "whose runtime is comfyui"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path: Path, runtime: RuntimeName, line: str, expected: str) -> None:
    assert expected in refusal(tmp_path, "start.sh", line, runtime)


def test_every_wrong_value_is_told_at_once(tmp_path: Path) -> None:
    said = refusal(tmp_path, "start.sh", "llama-server -np x \\\n -c y", LLAMACPP)
    assert [line.split(":")[1] for line in said.split("\n")] == ["1", "2"]


def test_options_that_are_not_understood_are_named_without_their_values(tmp_path: Path) -> None:
    reading = declare(tmp_path, "start.sh", "vllm serve m --max-num-seq 4 --api-key geheim1 --port=80 -tp 2", VLLM)
    assert reading.unread == ("--max-num-seq (close to --max-num-seqs)", "--api-key", "--port", "-tp")
    assert "geheim1" not in repr(reading)


@pytest.mark.parametrize(
    "line",
    [
        "vllm serve m --api-key=S3CRET --max-num-seqs 4",
        "vllm serve m --api-key S3CRET --hf-token S3CRET",
        "HF_TOKEN=S3CRET VLLM_API_KEY=S3CRET vllm serve m",
        "docker run -e HF_TOKEN=S3CRET vllm/vllm-openai --model m",
        "vllm serve https://user:S3CRET@host/m",
        "TOKEN=S3CRET\nvllm serve m --api-key $TOKEN",
        """vllm serve m --speculative-config '{"method":"draft_model","model":"m","token":"S3CRET"}'""",
        "vllm serve m S3CRET",
    ],
)
def test_no_secret_is_kept(tmp_path: Path, line: str) -> None:
    assert "S3CRET" not in repr(declare(tmp_path, "start.sh", line, VLLM))


def test_no_secret_is_told_in_a_refusal(tmp_path: Path) -> None:
    assert "S3CRET" not in refusal(tmp_path, "a.env", "HF_TOKEN S3CRET", VLLM, kind=ConfigKind.ENVIRONMENT)
    assert "S3CRET" not in refusal(tmp_path, "start.sh", "vllm serve m --api-key S3CRET --max-num-seqs x", VLLM)


def test_what_config_json_decides_makes_graph_options_idle(tmp_path: Path) -> None:
    reading = declare(tmp_path, "start.sh", "ovms --config_path c.json --cache_size 2 --rest_workers 8")
    assert entry(reading, "cache_size").without_effect == "the graph of config.json decides"
    assert entry(reading, "rest_workers").without_effect == ""


def test_a_weight_format_means_nothing_for_models_that_are_ready(tmp_path: Path) -> None:
    reading = declare(tmp_path, "s.sh", "ovms --task text_generation --source_model OpenVINO/q --weight-format int4")
    assert entry(reading, "weight_precision").without_effect.startswith("models of the OpenVINO organisation")


def test_a_unit_has_variables_and_a_command(tmp_path: Path) -> None:
    text = """[Unit]
Description=llama-server -np 9
[Service]
Environment="LLAMA_ARG_CTX_SIZE=4096" API_KEY=S3CRET
ExecStart=/usr/bin/llama-server --model /srv/m.gguf \\
    --parallel 4
# ExecStart=/usr/bin/llama-server -np 7
"""
    reading = declare(tmp_path, "llama.service", text, LLAMACPP)
    assert told(reading) == {"parallel": 4, "n_ctx": 4096, "n_ctx_per_slot": 1024}
    assert entry(reading, "n_ctx").where == "llama.service:4"
    assert "S3CRET" not in repr(reading)
    with_file = text.replace("[Service]", "[Service]\nEnvironmentFile=/etc/llama")
    assert by_default(declare(tmp_path, "llama.service", with_file, LLAMACPP)) == {}


def test_ollamas_drop_in_has_no_command(tmp_path: Path) -> None:
    text = '[Service]\nEnvironment="OLLAMA_NUM_PARALLEL=4" OLLAMA_FLASH_ATTENTION=1\nEnvironment=OLLAMA_KV_CACHE_TYPE="q8_0"\n'
    reading = declare(tmp_path, "override.conf", text, OLLAMA)
    assert told(reading) == {"OLLAMA_NUM_PARALLEL": 4, "OLLAMA_FLASH_ATTENTION": True, "OLLAMA_KV_CACHE_TYPE": "q8_0"}
    assert by_default(reading) == {"OLLAMA_MAX_QUEUE": 512}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("OLLAMA_NUM_PARALLEL=4 # four", 4),
        ("export OLLAMA_NUM_PARALLEL='4'", 4),
        ('OLLAMA_NUM_PARALLEL="4"', 4),
        ("OLLAMA_NUM_PARALLEL=", 1),
        ("OLLAMA_NUM_PARALLEL=$N", None),
    ],
)
def test_an_environment_file(tmp_path: Path, line: str, expected: int | None) -> None:
    reading = declare(tmp_path, "ollama.env", f"# comment\n{line}\nOLLAMA_HOST=0.0.0.0\n", OLLAMA)
    assert (told(reading) | by_default(reading)).get("OLLAMA_NUM_PARALLEL") == expected


@pytest.mark.parametrize("value", ["maybe", "2"])
def test_a_variable_with_a_wrong_value_is_told(tmp_path: Path, value: str) -> None:
    said = refusal(tmp_path, "o.env", f"OLLAMA_FLASH_ATTENTION={value}", OLLAMA)
    assert said == f"o.env:1: OLLAMA_FLASH_ATTENTION: is '{value}'; expected 1 or 0"


WORDS = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), max_size=12), min_size=1, max_size=8)


@given(WORDS)
def test_quoted_words_come_back(words: list[str]) -> None:
    """Whatever shlex quotes is one word again; an assignment in front is none of them."""
    (command,) = commands(f"run {shlex.join(words)}", "s")
    assert [word.text for word in command.words] == ["run", *words]


@given(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=200))
def test_no_shell_text_ends_in_a_traceback(text: str) -> None:
    try:
        found = commands(text, "s")
    except InputError:
        return
    assert all(word.where.startswith("s:") for command in found for word in command.words)


def test_a_precision_given_twice_is_refused_as_ovms_refuses_it(tmp_path: Path) -> None:
    line = 'ovms --task text_generation --plugin_config \'{"KV_CACHE_PRECISION": "u8"}\' --kv_cache_precision u8\n'
    said = refusal(tmp_path, "start.sh", line)
    assert said.startswith("start.sh:1: --plugin_config: holds KV_CACHE_PRECISION, which an option of its own sets")
