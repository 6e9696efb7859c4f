"""Manifests, compose files and what they carry: the right container, its words, its variables, its mounted files."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.evidence import Scalar
from probes.fleet import RuntimeName
from tests.declaring import by_default, declare, entry, graph, refusal, told

VLLM, LLAMACPP, OVMS, OLLAMA = RuntimeName.VLLM, RuntimeName.LLAMACPP, RuntimeName.OVMS, RuntimeName.OLLAMA
DEPLOYMENT = """apiVersion: v1
kind: ConfigMap
metadata: {name: tuning}
data:
  LLAMA_ARG_CTX_SIZE: "4096"
  SLOTS: "4"
---
apiVersion: apps/v1
kind: KIND
metadata: {name: llama}
spec:
  template:
    spec:
      containers:
        - name: proxy
          image: nginx:1
        - name: llama
          image: ghcr.io/ggml-org/llama.cpp:server
          args:
            - --parallel
            - $(SLOTS)
            - "--cache-type-k=q8_0"
            - --api-key
            - S3CRET
          envFrom:
            - configMapRef: {name: tuning}
            - secretRef: {name: keys}
          env:
            - {name: LLAMA_ARG_FLASH_ATTN, value: "on"}
            - {name: HF_TOKEN, value: S3CRET}
            - name: LLAMA_ARG_CACHE_REUSE
              valueFrom: {configMapKeyRef: {name: tuning, key: SLOTS}}
"""


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "Job"])
def test_a_workload_with_a_config_map(tmp_path: Path, kind: str) -> None:
    reading = declare(tmp_path, "llama.yaml", DEPLOYMENT.replace("KIND", kind), LLAMACPP)
    expected: dict[str, Scalar] = {
        "n_ctx": 4096, "parallel": 4, "n_ctx_per_slot": 1024, "cache_type_k": "q8_0", "flash_attn": "on", "cache_reuse": 4
    }  # fmt: skip
    assert told(reading) == expected
    assert [entry(reading, one).where for one in ("n_ctx", "parallel", "cache_reuse")] == [
        "llama.yaml:5",
        "llama.yaml:21",
        "llama.yaml:6",
    ]
    assert "S3CRET" not in repr(reading)


def test_a_config_map_that_is_not_in_the_file_leaves_defaults_open(tmp_path: Path) -> None:
    text = DEPLOYMENT.replace("configMapRef: {name: tuning}", "configMapRef: {name: elsewhere}").replace("KIND", "Deployment")
    assert by_default(declare(tmp_path, "llama.yaml", text, LLAMACPP)) == {}


def test_a_shell_inside_a_container(tmp_path: Path) -> None:
    text = """apiVersion: v1
kind: Pod
spec:
  containers:
    - name: main
      image: internal/base
      command: ["/bin/sh", "-c"]
      args:
        - |
          set -e
          exec vllm serve m --max-num-seqs 16 --enable-prefix-caching
"""
    reading = declare(tmp_path, "pod.yaml", text, VLLM)
    assert told(reading) == {"max_num_seqs": 16, "enable_prefix_caching": True}
    assert entry(reading, "max_num_seqs").where == "pod.yaml:9"


def test_a_container_that_runs_a_script_is_not_known_to_run_the_server(tmp_path: Path) -> None:
    """The image alone says nothing then, and least of all which defaults hold."""
    text = """apiVersion: v1
kind: Pod
spec: {containers: [{name: v, image: vllm/vllm-openai, command: [./start.sh]}]}
"""
    assert "pod.yaml:3: runs something else than vllm" in refusal(tmp_path, "pod.yaml", text, VLLM)


def test_two_servers_need_a_choice(tmp_path: Path) -> None:
    text = """apiVersion: v1
kind: List
items:
  - apiVersion: v1
    kind: Pod
    spec:
      containers:
        - {name: a, image: vllm/vllm-openai, args: [--max-num-seqs, "4"]}
        - {name: b, image: vllm/vllm-openai, args: [--max-num-seqs, "8"]}
"""
    said = refusal(tmp_path, "pods.yaml", text, VLLM)
    assert said == "pods.yaml: holds 2 containers that may run vllm; expected `container` in the inventory, one of: a, b"
    assert told(declare(tmp_path, "pods.yaml", text, VLLM, container="b")) == {"max_num_seqs": 8}
    assert "one of: a, b" in refusal(tmp_path, "pods.yaml", text, VLLM, container="c")
    assert "holds no container that runs ollama" in refusal(tmp_path, "pods.yaml", text, OLLAMA)


OVMS_POD = """apiVersion: v1
kind: ConfigMap
metadata:
  name: graphs
data:
  graph.pbtxt: |
GRAPH
  other.txt: hello
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: ovms}
spec:
  template:
    spec:
      volumes:
        - name: config
          configMap: {name: graphs}
      containers:
        - name: ovms
          image: openvino/model_server:2026.2-gpu
          args: ["--config_path", "/models/config.json", "--rest_workers=8"]
"""


def test_a_graph_in_a_mounted_config_map_keeps_its_lines(tmp_path: Path) -> None:
    inside = "\n".join(f"    {line}" for line in graph("\nmax_num_seqs: 16\nenable_prefix_caching: true").split("\n"))
    text = OVMS_POD.replace("GRAPH", inside)
    reading = declare(tmp_path, "ovms.yaml", text)
    assert told(reading) == {"rest_workers": 8, "max_num_seqs": 16, "enable_prefix_caching": True}
    where = entry(reading, "max_num_seqs").where
    assert "max_num_seqs: 16" in text.split("\n")[int(where.rpartition(":")[2]) - 1]
    broken = refusal(tmp_path, "ovms.yaml", text.replace("max_num_seqs", "max_seqs"))
    assert broken.startswith(f"{where}: max_seqs: is not a field")


def test_a_config_map_alone_carries_a_graph(tmp_path: Path) -> None:
    inside = "\n".join(f"    {line}" for line in graph("cache_size: 2").split("\n"))
    reading = declare(tmp_path, "graphs.yaml", OVMS_POD.replace("GRAPH", inside).split("---")[0])
    assert told(reading) == {"cache_size": 2}


def test_several_graphs_need_a_choice(tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: g}\ndata:\n"
    for name, size in (("a", 1), ("b", 2)):
        text += f"  {name}.pbtxt: |\n" + "\n".join(f"    {line}" for line in graph(f"cache_size: {size}").split("\n")) + "\n"
    assert "`entry` in the inventory, one of: a.pbtxt, b.pbtxt" in refusal(tmp_path, "g.yaml", text)
    assert told(declare(tmp_path, "g.yaml", text, entry="b.pbtxt")) == {"cache_size": 2}


COMPOSE = """x-common: &common
  environment:
    LLAMA_ARG_CTX_SIZE: 4096
    HF_TOKEN: S3CRET
services:
  web: {image: nginx}
  llama:
    <<: *common
    image: ghcr.io/ggml-org/llama.cpp:server
    command: COMMAND
"""


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("-m m.gguf --parallel 4", {"parallel": 4}),
        ('["--parallel", "4", "--flash-attn", "on"]', {"parallel": 4, "flash_attn": "on"}),
        (">-\n      -m m.gguf\n      --parallel 4", {"parallel": 4}),
        ("\n      - --parallel\n      - 4", {"parallel": 4}),
        ("--parallel ${SLOTS:-4}", {}),
        ("sh -c 'llama-server --parallel 4 --alias $$NAME'", {"parallel": 4}),
    ],
)
def test_a_compose_service(tmp_path: Path, command: str, expected: dict[str, Scalar]) -> None:
    reading = declare(tmp_path, "compose.yml", COMPOSE.replace("COMMAND", command), LLAMACPP)
    share = {"n_ctx_per_slot": 1024} if "parallel" in expected else {}
    assert told(reading) == {"n_ctx": 4096, **expected, **share}
    assert "S3CRET" not in repr(reading)


def test_a_compose_value_from_outside_leaves_defaults_open(tmp_path: Path) -> None:
    reading = declare(tmp_path, "compose.yml", COMPOSE.replace("COMMAND", "--parallel ${SLOTS:-4}"), LLAMACPP)
    assert (by_default(reading), reading.unread) == ({}, ("--parallel (depends on SLOTS)",))


def test_a_compose_environment_as_a_list_and_from_a_file(tmp_path: Path) -> None:
    text = """services:
  ollama:
    image: ollama/ollama
    env_file: [ollama.env]
    environment:
      - OLLAMA_NUM_PARALLEL=4
      - OLLAMA_KEEP_ALIVE
"""
    (tmp_path / "ollama.env").write_text("OLLAMA_NUM_PARALLEL=2\nOLLAMA_KV_CACHE_TYPE=q8_0\n")
    reading = declare(tmp_path, "docker-compose.yaml", text, OLLAMA)
    assert told(reading) == {"OLLAMA_NUM_PARALLEL": 4, "OLLAMA_KV_CACHE_TYPE": "q8_0"}
    assert entry(reading, "OLLAMA_KV_CACHE_TYPE").where == "./ollama.env:2"
    assert reading.unread == ("OLLAMA_KEEP_ALIVE (depends on $OLLAMA_KEEP_ALIVE)",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("services:\n  a: {image: nginx}\n", "compose.yml: holds no service that runs llama.cpp"),
        ("services:\n  a: {extends: {service: b}, image: llama.cpp}\n", "compose.yml:2: extends another service"),
        ("services:\n  a: {image: x}\n  a: {image: y}\n", "compose.yml:3: has the key 'a' twice"),
        ("a: &a {<<: *a}\nservices: *a", "compose.yml:1: merges mappings in a circle"),
        ("a: 1\nb: {{ .Values.x }}\nc: [", "a rendered manifest: helm template"),
        ("apiVersion: v1\nkind: Pod\nspec: text\n", "holds no container that runs llama.cpp"),
        ("hello: world", "is neither a manifest nor a compose file"),
        ("- [a", "not valid YAML"),
        ("[" * 5000, "opens more than 200 brackets at once"),
        ("- " * 5000, "not valid YAML"),
        ("a: b\n" * 200_000, "characters; expected at most"),
        ("", "is neither"),
        ("!!python/object:os.system x", "is neither"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in refusal(tmp_path, "compose.yml", text, LLAMACPP)


def test_aliases_of_aliases_cost_nothing(tmp_path: Path) -> None:
    """Nine aliases of nine aliases, ten deep, would be three billion nodes."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    text = "\n".join([*lines, "services:\n  llama: {image: llama.cpp, command: --parallel 2}"])
    assert told(declare(tmp_path, "compose.yml", text, LLAMACPP)) == {"parallel": 2}


def test_a_configuration_file_of_vllm(tmp_path: Path) -> None:
    text = """model: m
max-num-seqs: 16
max_num_batched_tokens: 8k
enable-prefix-caching: false
kv-cache-dtype: fp8
api-key: S3CRET
speculative-config: {method: eagle3, num_speculative_tokens: 3}
"""
    reading = declare(tmp_path, "vllm.yaml", text, VLLM)
    assert told(reading) == {
        "max_num_seqs": 16,
        "max_num_batched_tokens": 8000,
        "enable_prefix_caching": False,
        "kv_cache_dtype": "fp8",
        "speculative_config": "configured",
    }
    assert reading.facts == {"speculative_method": "eagle3"}
    assert entry(reading, "kv_cache_dtype").where == "vllm.yaml:5"
    assert "S3CRET" not in repr(reading)


def test_versions_in_yaml_stay_as_they_are_written(tmp_path: Path) -> None:
    """F134: nothing turns 2026.20 into 2026.2 on the way."""
    text = "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: l, image: llama.cpp, args: [--spec-type, 2026.20]}]}"
    assert told(declare(tmp_path, "pod.yaml", text, LLAMACPP)) == {"spec_type": "2026.20"}
