"""Values that tests of the probes share."""

from __future__ import annotations

import textwrap
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from probes.context import Context
from probes.evidence import Host, HostTuning, Missing, MissingReason, Tool
from probes.model import ModelFiles, find_source, genai_version, prepare_model
from probes.redaction import Redactor

_ABSENT = Missing(missing=MissingReason.NO_SENSOR)


def host() -> Host:
    tuning = HostTuning(
        governor=_ABSENT,
        huge_pages="0",
        transparent_huge_pages="madvise",
        swap_bytes=0,
        numa_nodes=1,
        container_cpu_limit=_ABSENT,
        container_memory_bytes=_ABSENT,
    )
    return Host(
        alias="local-abc123",
        fingerprint="abc123abc123",
        cpu="Example CPU",
        isa=("avx2",),
        physical_cores=2,
        logical_cores=2,
        memory_bytes=24 * 2**30,
        os="Debian 12",
        kernel="6.1",
        driver=_ABSENT,
        tuning=tuning,
    )


# What a runtime can do to the process that it lives in, for a child to be sent into.
PLANTED = """
    import os, time

    def crash(**_): os.abort()
    def hang(**_): time.sleep(60)
    def eat(**_):
        held = []
        while True: held.append(bytearray(2**24))
    def choke(**_): raise RuntimeError("[GPU] CL_OUT_OF_HOST_MEMORY while the model was compiled")
"""


class Clock:
    """A clock that advances one second each time it is read."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a child process find the module `planted`, whose functions break it."""
    folder = tmp_path / "planted"
    folder.mkdir()
    (folder / "planted.py").write_text(textwrap.dedent(PLANTED))
    monkeypatch.setenv("PYTHONPATH", str(folder))


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context(
        root=tmp_path,
        evidence=tmp_path / "evidence",
        cache=tmp_path / "cache",
        client=host(),
        tool=Tool(version="0.1.0", git_revision="abc", command="python -m probes run"),
        redact=Redactor(secrets=["canary-key-12345"], paths={"/home/someone": "~"}),
        clock=Clock(),
        say=lambda _line: None,
    )


@pytest.fixture(scope="session")
def model_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for converted models that lasts as long as the tests do."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="session")
def prepared(model_cache: Path) -> list[ModelFiles]:
    """What two callers got that asked for the model at the same time; a killed conversion had left something behind."""
    recorded = find_source().recorded_sha256 or ""
    (model_cache / f".{recorded[:12]}-{genai_version()}.killed.part").mkdir()
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(prepare_model, [model_cache, model_cache]))


@pytest.fixture(scope="session")
def model_files(prepared: list[ModelFiles]) -> ModelFiles:
    """The real model, converted once for all tests."""
    return prepared[0]
