"""Other load generators beside ours: how each is started against the truth server, and what its result file says.

Each is used if its program is found. Most want a Hugging Face tokenizer to make prompts, as a folder, because nothing is
downloaded here. Run with aiperf 0.13.0 and inference-perf 0.7.0; the commands of the others follow the documentation of
guidellm 0.8, evalscope 1.14 and vLLM.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from probes.errors import InputError
from probes.exchange.importing import read_source
from probes.load.statistics import percentile

_PROMPT_TOKENS: Final = 32
_TIMEOUT_S: Final = 300.0
_LAST_WORDS: Final = 200


@dataclass(frozen=True, kw_only=True)
class Task:
    """What a peer is asked to do; `folder` is empty and its own."""

    url: str
    streams: int
    requests: int
    tokens: int
    tokenizer: str
    folder: Path


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a peer reports, in seconds; None for what it does not."""

    requests: int
    ttft_p50_s: float | None
    ttft_p95_s: float | None
    itl_p50_s: float | None


@dataclass(frozen=True, kw_only=True)
class Peer:
    """One tool: its program, its command and the reader of its result. `environ` keeps it off the network."""

    name: str
    program: str
    command: Callable[[Task], list[str]]
    read: Callable[[Path], Told]
    environ: Mapping[str, str] = field(default_factory=dict)


class PeerError(Exception):
    """A peer did not measure; the message holds its last words."""


def find(peer: Peer, folders: Sequence[Path]) -> Path | None:
    """Find a peer's program in the folders that are named, else on PATH."""
    for folder in folders:
        program = folder / peer.program
        if os.access(program, os.X_OK) and program.is_file():
            return program
    found = shutil.which(peer.program)
    return Path(found) if found else None


def measure(peer: Peer, program: Path, task: Task) -> tuple[Told, float]:
    """Run a peer to its end; gives what it reports and the processor time it took.

    Raises:
        PeerError: it failed, took too long or wrote nothing that can be read.
    """
    command = [str(program), *peer.command(task)]
    environ = {**os.environ, **peer.environ}
    before = os.times()
    try:
        done = subprocess.run(  # noqa: S603
            command, cwd=task.folder, env=environ, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise PeerError(f"{peer.name}: {exc}") from exc
    after = os.times()
    try:
        return peer.read(task.folder), (after[2] + after[3]) - (before[2] + before[3])
    except (LookupError, ValueError, TypeError, OSError, InputError) as exc:
        words = (done.stderr or done.stdout).strip().splitlines()
        last = words[-1][:_LAST_WORDS] if words else str(exc)
        raise PeerError(f"{peer.name}: exit code {done.returncode}: {last}") from exc


def _guidellm(task: Task) -> list[str]:
    return [
        "run",
        "--backend",
        f"kind=openai_http,target={task.url},model=truth",
        "--profile",
        f"kind=concurrent,streams={task.streams}",
        "--constraint",
        f"kind=max_requests,count={task.requests}",
        "--tokenizer",
        f"kind=huggingface_auto,model={task.tokenizer}",
        "--data",
        f"kind=synthetic_text,prompt_tokens={_PROMPT_TOKENS},output_tokens={task.tokens}",
        "--output",
        f"kind=json,path={task.folder / 'guidellm.json'}",
        "--disable-console-interactive",
    ]


def _aiperf(task: Task) -> list[str]:
    asked = ["--concurrency", f"{task.streams}", "--request-count", f"{task.requests}"]
    lengths = ["--isl", f"{_PROMPT_TOKENS}", "--osl", f"{task.tokens}"]
    return [
        "profile",
        "-m",
        "truth",
        "--endpoint-type",
        "chat",
        "--streaming",
        "-u",
        task.url,
        "--tokenizer",
        task.tokenizer or "builtin",
        *asked,
        *lengths,
        "--ui",
        "none",
        "--output-artifact-dir",
        f"{task.folder}",
    ]


def _vllm(task: Task) -> list[str]:
    return [
        "bench",
        "serve",
        "--backend",
        "openai-chat",
        "--base-url",
        task.url,
        "--endpoint",
        "/v1/chat/completions",
        "--model",
        "truth",
        "--tokenizer",
        task.tokenizer,
        "--dataset-name",
        "random",
        "--random-input-len",
        f"{_PROMPT_TOKENS}",
        "--random-output-len",
        f"{task.tokens}",
        "--num-prompts",
        f"{task.requests}",
        "--max-concurrency",
        f"{task.streams}",
        "--save-result",
        "--save-detailed",
        "--result-dir",
        f"{task.folder}",
        "--disable-tqdm",
    ]


def _evalscope(task: Task) -> list[str]:
    lengths = ["--min-prompt-length", f"{_PROMPT_TOKENS}", "--max-prompt-length", f"{_PROMPT_TOKENS}"]
    return [
        "perf",
        "--url",
        f"{task.url}/v1/chat/completions",
        "--model",
        "truth",
        "--api",
        "openai",
        "--parallel",
        f"{task.streams}",
        "--number",
        f"{task.requests}",
        "--dataset",
        "random",
        "--tokenizer-path",
        task.tokenizer,
        *lengths,
        "--max-tokens",
        f"{task.tokens}",
        "--stream",
        "--outputs-dir",
        f"{task.folder}",
    ]


def _inference_perf(task: Task) -> list[str]:
    """Write its configuration; JSON is YAML. Prompts of type mock are its only ones that go to the chat path."""
    config = {
        "load": {"type": "concurrent", "stages": [{"num_requests": task.requests, "concurrency_level": task.streams}]},
        "api": {"type": "chat", "streaming": True},
        "server": {"type": "vllm", "model_name": "truth", "base_url": task.url, "ignore_eos": True},
        "tokenizer": {"pretrained_model_name_or_path": task.tokenizer},
        "data": {"type": "mock"},
        "report": {"request_lifecycle": {"summary": True, "percentiles": [50, 90, 95, 99]}},
        "storage": {"local_storage": {"path": f"{task.folder / 'report'}"}},
    }
    file = task.folder / "config.yml"
    file.write_text(json.dumps(config), encoding="utf-8")
    return ["--config_file", f"{file}"]


def _imported(pattern: str) -> Callable[[Path], Told]:
    """Read a result as `probes import` does: one sample for each request."""

    def read(folder: Path) -> Told:
        (report,) = read_source(_only(folder, pattern)).reports
        values = report.values
        # A first chunk of the truth server holds the first token, so that both words mean one thing here.
        ttft = values.get("ttft_s") or values.get("first_event_s") or ()
        itl = values.get("itl_s") or values.get("tpot_s") or ()
        return Told(requests=len(ttft), ttft_p50_s=_share(ttft, 0.5), ttft_p95_s=_share(ttft, 0.95), itl_p50_s=_share(itl, 0.5))

    return read


def _read_evalscope(folder: Path) -> Told:
    """Read the table of percentiles (evalscope/perf/utils/perf_constants.py); times are milliseconds."""
    rows: list[dict[str, Any]] = json.loads(_only(folder, "benchmark_percentile.json").read_text(encoding="utf-8"))
    summary: dict[str, Any] = json.loads(_only(folder, "benchmark_summary.json").read_text(encoding="utf-8"))
    at = {row["Percentiles"]: row for row in rows}
    number = next((int(value) for key, value in summary.items() if key.lower().startswith("succeed")), 0)
    return Told(
        requests=number,
        ttft_p50_s=at["50%"]["TTFT (ms)"] / 1e3,
        ttft_p95_s=at["95%"]["TTFT (ms)"] / 1e3,
        itl_p50_s=at["50%"]["ITL (ms)"] / 1e3,
    )


def _read_inference_perf(folder: Path) -> Told:
    """Read the summary of the run (inference_perf/reportgen/base.py); times are seconds."""
    summary = json.loads(_only(folder, "*summary_lifecycle_metrics.json").read_text(encoding="utf-8"))
    latency = summary["successes"]["latency"]
    ttft, itl = latency["time_to_first_token"], latency["inter_token_latency"]
    return Told(
        requests=int(summary["successes"]["count"]),
        ttft_p50_s=ttft["median"],
        ttft_p95_s=ttft["p95"],
        itl_p50_s=itl["median"],
    )


PEERS: Final = (
    Peer(
        name="guidellm",
        program="guidellm",
        command=_guidellm,
        read=_imported("guidellm.json"),
        environ={"HF_HUB_OFFLINE": "1", "USE_TORCH": "0"},
    ),
    # With HF_HUB_OFFLINE it takes no folder for a tokenizer (0.13.0).
    Peer(name="aiperf", program="aiperf", command=_aiperf, read=_imported("profile_export.jsonl")),
    Peer(
        name="inference-perf",
        program="inference-perf",
        command=_inference_perf,
        read=_read_inference_perf,
        environ={"HF_HUB_OFFLINE": "1"},
    ),
    Peer(name="evalscope", program="evalscope", command=_evalscope, read=_read_evalscope, environ={"HF_HUB_OFFLINE": "1"}),
    Peer(name="vllm bench", program="vllm", command=_vllm, read=_imported("*.json"), environ={"HF_HUB_OFFLINE": "1"}),
)


def _only(folder: Path, pattern: str) -> Path:
    """Find the one result file, however deep a tool puts it.

    Raises:
        LookupError: there is none.
    """
    found = sorted(folder.rglob(pattern))
    if not found:
        raise LookupError(f"wrote no {pattern}")
    return found[-1]


def _share(samples: Sequence[float], share: float) -> float | None:
    return percentile(sorted(samples), share) if samples else None
