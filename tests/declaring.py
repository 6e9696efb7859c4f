"""Writing configuration files into a folder and reading them as the inventory would have them read."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.declared.entry import Entry, Reading
from probes.declared.reader import Source, read
from probes.errors import InputError
from probes.evidence import Scalar
from probes.fleet import ConfigFile, ConfigKind, RuntimeName

GRAPH = """input_stream: "HTTP_REQUEST_PAYLOAD:input"
output_stream: "HTTP_RESPONSE_PAYLOAD:output"
node: {
  name: "LLMExecutor"
  calculator: "HttpLLMCalculator"
  input_stream: "LOOPBACK:loopback"
  input_stream: "HTTP_REQUEST_PAYLOAD:input"
  input_side_packet: "LLM_NODE_RESOURCES:llm"
  output_stream: "LOOPBACK:loopback"
  output_stream: "HTTP_RESPONSE_PAYLOAD:output"
  input_stream_info: { tag_index: 'LOOPBACK:0', back_edge: true }
  node_options: {
    [type.googleapis.com / mediapipe.LLMCalculatorOptions]: {
      OPTIONS
    }
  }
  input_stream_handler {
    input_stream_handler: "SyncSetInputStreamHandler",
    options {
      [mediapipe.SyncSetInputStreamHandlerOptions.ext] {
        sync_set { tag_index: "LOOPBACK:0" }
      }
    }
  }
}
"""
OPTIONS_LINE = GRAPH[: GRAPH.index("OPTIONS\n")].count("\n") + 1


def graph(options: str = "") -> str:
    """Write a graph of an LLM with these options and a models_path."""
    return GRAPH.replace("OPTIONS\n", f'models_path: "./" {options}\n')


def declare(
    folder: Path,
    name: str,
    text: str | bytes,
    runtime: RuntimeName = RuntimeName.OVMS,
    *,
    version: str | None = "2026.2",
    kind: ConfigKind | None = None,
    container: str = "",
    entry: str = "",
) -> Reading:
    """Write one file and read it."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    file = ConfigFile(path=name, kind=kind, container=container, entry=entry)
    return read(Source(path=path, name=name, file=file, runtime=runtime, version=version))


def told(reading: Reading) -> dict[str, Scalar]:
    """Give what a file says itself, by control."""
    return {one.control: one.value for one in reading.entries if not one.default_of}


def by_default(reading: Reading) -> dict[str, Scalar]:
    """Give the defaults of what it leaves out."""
    return {one.control: one.value for one in reading.entries if one.default_of}


def entry(reading: Reading, control: str) -> Entry:
    """Give the one entry of a control."""
    (one,) = (one for one in reading.entries if one.control == control)
    return one


def refusal(folder: Path, name: str, text: str | bytes, runtime: RuntimeName = RuntimeName.OVMS, **file: str | None) -> str:
    """Give the message with which a file is refused."""
    with pytest.raises(InputError) as caught:
        declare(folder, name, text, runtime, **file)  # type: ignore[arg-type]
    return str(caught.value)
