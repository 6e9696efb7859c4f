"""The embedded service starts in order or says why not, and never outlives whoever started it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from probes.endpoints.embedded.engine import importable
from probes.endpoints.embedded.server import EmbeddedAddress, running, serve
from probes.errors import HostError, ProbeError, UsageError
from probes.model import ModelFiles

BODY = {
    "model": "SmolLM2-135M-Instruct",
    "messages": [{"role": "user", "content": "Write a long story."}],
    "max_tokens": 4000,
    "ignore_eos": True,
    "stream": True,
}


def _events(response: httpx.Response) -> Iterator[str]:
    yield from (line.removeprefix("data: ") for line in response.iter_lines() if line)


def _family(address: EmbeddedAddress) -> list[psutil.Process]:
    """The service and its engine."""
    process = psutil.Process(address.pid)
    return [process, *process.children(recursive=True)]


def _gone(processes: list[psutil.Process]) -> bool:
    return not psutil.wait_procs(processes, timeout=30)[1]


def test_a_port_in_use_is_one_message(model_files: ModelFiles) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(HostError, match=rf"127\.0\.0\.1:{port}: cannot be listened on \(Address already in use\)"):
            serve(model_files, {}, port=port)


@pytest.mark.parametrize(("host", "port", "error", "words"), [
    ("0.0.0.0", 0, UsageError, "is open to other machines; expected 127.0.0.1, or a key"),  # noqa: S104
    ("nowhere", 0, UsageError, "is not an address"),
    ("127.0.0.1", 70000, HostError, "127.0.0.1:70000: cannot be listened on"),
    ("192.0.2.1", 0, UsageError, "is open to other machines"),
])  # fmt: skip
def test_addresses_that_cannot_be_used(
    model_files: ModelFiles, host: str, port: int, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        serve(model_files, {}, host=host, port=port)


def test_an_unknown_setting_is_told_before_anything_starts(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match="setting parallel: is not known; expected one of device, KV_CACHE_PRECISION"),
        running({"parallel": 4}, tmp_path),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.engine
def test_a_value_that_the_runtime_refuses_is_told_in_its_words(model_cache: Path, model_files: ModelFiles) -> None:
    """u3 passes the runtime's check of the property, and no AVX2 kernel takes it: only generating shows that."""
    may_have_kernel = "avx512f" in Path("/proc/cpuinfo").read_text()
    precision, words = (
        ("i8", "Wrong value i8 for property key KV_CACHE_PRECISION") if may_have_kernel else ("u3", "kvcache type")
    )
    with pytest.raises(ProbeError, match=words), running({"KV_CACHE_PRECISION": precision}, model_cache):
        pass


def test_a_damaged_cache_is_told_by_the_child(tmp_path: Path, model_files: ModelFiles) -> None:
    folder = tmp_path / model_files.ir.name
    folder.mkdir()
    with pytest.raises(HostError, match=r"prepared\.json: is missing or damaged"), running({}, tmp_path):
        pass


@pytest.mark.engine
def test_the_engine_dies_inside_a_stream(
    model_cache: Path, model_files: ModelFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client is told inside the stream, and the service ends, as OVMS does when its engine fails.

    The same service asks for a key; a wrong one gets the status that OVMS's own table gives it.
    """
    monkeypatch.setenv("EMBEDDED_TEST_KEY", "right")
    log = tmp_path / "log.txt"
    with running({"cache_size": 1}, model_cache, log, api_key_env="EMBEDDED_TEST_KEY") as address:
        assert "right" not in " ".join(psutil.Process(address.pid).cmdline())
        processes = _family(address)
        with httpx.Client(base_url=address.url, timeout=60, trust_env=False) as client:
            for headers in ({}, {"authorization": "Bearer wrong"}):
                refused = client.post("/v3/chat/completions", json=BODY, headers=headers)
                assert (refused.status_code, refused.json()) == (
                    500,
                    {"error": "Unauthorized request due to invalid or missing api-key"},
                )
            assert client.get("/v3/models").status_code == 200
            key = {"authorization": "Bearer right"}
            with client.stream("POST", "/v3/chat/completions", json=BODY, headers=key) as response:
                events = _events(response)
                assert json.loads(next(events))["choices"][0]["delta"] == {"role": "assistant", "content": None}
                next(process for process in processes if process.pid != address.pid).kill()
                *_, last = events
        assert json.loads(last) == {"error": "the engine ended (signal SIGKILL)"}
        assert _gone(processes)


@pytest.mark.engine
def test_the_service_ends_when_its_starter_is_killed(model_cache: Path, model_files: ModelFiles) -> None:
    """And says so to whoever is being answered."""
    script = """
        import json, sys, time
        from dataclasses import asdict
        from pathlib import Path
        from probes.endpoints.embedded.server import running
        with running({"cache_size": 1}, Path(sys.argv[1])) as address:
            print(json.dumps(asdict(address)), flush=True)
            time.sleep(600)
    """
    starter = subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", textwrap.dedent(script), str(model_cache)],
        stdout=subprocess.PIPE,
        env=importable(os.environ),
    )
    with starter, contextlib.ExitStack() as after:
        after.callback(starter.kill)
        assert starter.stdout is not None
        address = EmbeddedAddress(**json.loads(starter.stdout.readline()))
        processes = _family(address)
        with (
            httpx.Client(base_url=address.url, timeout=60, trust_env=False) as client,
            client.stream("POST", "/v3/chat/completions", json=BODY) as response,
        ):
            events = _events(response)
            next(events)
            os.kill(starter.pid, signal.SIGKILL)
            *_, last = events
        assert json.loads(last) == {"error": "the service is ending"}
        assert _gone(processes)
