"""Which format a file has, the names its settings get, and that no file ends in anything but a message."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gen.knowledge import Control, Engine, load_knowledge
from gen.knowledge.schema import ENGINES
from probes.declared import graph, llamacpp, ollama, ovms, plugin, vllm
from probes.declared.reader import Source, read
from probes.errors import InputError
from probes.evidence import Technique
from probes.fleet import ConfigFile, ConfigKind, RuntimeName
from tests.declaring import declare, refusal
from tests.declaring import graph as written

POD = "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: l, image: IMAGE, args: [-x]}]}"
# Inner steps of a share, or worked out from others.
OWN = {"kv_unified"}
OPTIONS = {
    RuntimeName.OVMS: {option.control: option.technique for option in ovms.OPTIONS}
    | graph.TECHNIQUES
    | plugin.TECHNIQUES
    | {graph.QUEUE: Technique.CONTINUOUS_BATCHING, ovms.IDLE: Technique.KV_CACHE},
    RuntimeName.VLLM: {option.control: option.technique for option in vllm.OPTIONS},
    RuntimeName.LLAMACPP: {option.control: option.technique for option in llamacpp.OPTIONS},
    RuntimeName.OLLAMA: {option.control: option.technique for option in ollama.OPTIONS} | ollama.PARAMETERS,
}


@pytest.mark.parametrize(
    ("name", "text", "runtime", "kind"),
    [
        ("graph.pbtxt", written(), RuntimeName.OVMS, ConfigKind.GRAPH),
        ("8b.PBTXT", written(), RuntimeName.OVMS, ConfigKind.GRAPH),
        ("config.json", '{"model_config_list": [{"config": {"name": "m"}}]}', RuntimeName.OVMS, ConfigKind.OVMS_CONFIG),
        ("a.yaml", POD.replace("IMAGE", "llama.cpp"), RuntimeName.LLAMACPP, ConfigKind.KUBERNETES),
        ("a.yml", "services: {l: {image: ollama/ollama}}", RuntimeName.OLLAMA, ConfigKind.COMPOSE),
        ("a.yaml", "max-num-seqs: 4", RuntimeName.VLLM, ConfigKind.VLLM_CONFIG),
        ("Modelfile.coder", "FROM m", RuntimeName.OLLAMA, ConfigKind.MODELFILE),
        ("coder.modelfile", "FROM m", RuntimeName.OLLAMA, ConfigKind.MODELFILE),
        ("start", "#!/bin/sh\nllama-server", RuntimeName.LLAMACPP, ConfigKind.COMMAND_LINE),
        ("ollama", "OLLAMA_NUM_PARALLEL=4\n", RuntimeName.OLLAMA, ConfigKind.ENVIRONMENT),
        ("o.conf", "[Service]\nEnvironment=A=b\n", RuntimeName.OLLAMA, ConfigKind.UNIT),
    ],
)
def test_the_format_is_told_from_name_and_content(
    tmp_path: Path, name: str, text: str, runtime: RuntimeName, kind: ConfigKind
) -> None:
    assert declare(tmp_path, name, text, runtime).kind is kind


def test_a_kind_in_the_inventory_is_stronger_than_a_name(tmp_path: Path) -> None:
    assert declare(tmp_path, "graph.txt", written(), kind=ConfigKind.GRAPH).kind is ConfigKind.GRAPH
    assert "is one file of" in refusal(tmp_path, "m.json", "{}", kind=ConfigKind.MODEL_FOLDER)
    assert "is no compose file" in refusal(tmp_path, "m.yaml", "a: 1", kind=ConfigKind.COMPOSE)


@pytest.mark.parametrize("runtime", OPTIONS)
def test_settings_have_the_names_and_techniques_of_the_knowledge_base(runtime: RuntimeName) -> None:
    """A setting by another name would stand beside the inventory's and never agree with it."""
    known: dict[str, set[Technique]] = {}
    engine: Engine = ENGINES[runtime]
    controls: tuple[Control, ...] = load_knowledge().controls[engine]
    for control in controls:
        for setting in control.settings:
            known.setdefault(setting, set()).add(control.technique)
    read_here = {name: technique for name, technique in OPTIONS[runtime].items() if name not in OWN}
    assert {name for name, technique in read_here.items() if technique not in known.get(name, set())} == set()


def test_a_pipe_is_no_file_and_nobody_waits_for_its_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "graph.pbtxt")
    source = Source(path=tmp_path / "graph.pbtxt", name="g", file=ConfigFile(path="g"), runtime=RuntimeName.OVMS, version=None)
    with pytest.raises(InputError, match="g: is no regular file"):
        read(source)


def test_a_name_that_no_file_can_have_is_told(tmp_path: Path) -> None:
    source = Source(path=tmp_path / ("x" * 5000), name="x", file=ConfigFile(path="x"), runtime=RuntimeName.OVMS, version=None)
    with pytest.raises(InputError, match="x: cannot be looked at"):
        read(source)


LINES = st.lists(
    st.one_of(
        st.text(max_size=30),
        st.sampled_from(
            ["apiVersion: v1", "kind: Pod", "spec:", "  containers:", "  - name: a", "services:", "  a: {image: vllm}",
             "[Service]", "ExecStart=vllm \\", "FROM x", "PARAMETER num_ctx 1", 'SYSTEM """', "vllm serve --max-num-seqs 1",
             "llama-server -np", "node {", "}", "{", '{"model_config_list": [', "]}", "<<EOF", "${X:-1}", "$(X", "- *a",
             "a: &a", "docker run vllm", "export A=1", "OLLAMA_NUM_PARALLEL=1"]
        ),
    ),
    max_size=12,
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(
    lines=LINES,
    kind=st.sampled_from([kind for kind in ConfigKind if kind not in {ConfigKind.GGUF, ConfigKind.MODEL_FOLDER}]),
    runtime=st.sampled_from(RuntimeName),
)
def test_no_file_ends_in_a_traceback(tmp_path: Path, lines: list[str], kind: ConfigKind, runtime: RuntimeName) -> None:
    text = "\n".join(lines).encode("utf-8", "surrogatepass")
    try:
        reading = declare(tmp_path, "file", text, runtime, kind=kind)
    except InputError as exc:
        assert all(problem.place.startswith("file") for problem in exc.problems)  # noqa: PT017
    else:
        assert all(one.where.startswith("file") for one in reading.entries)
