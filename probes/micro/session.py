"""One benchmark module run by pytest inside a child process."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import JsonValue

from probes.devices import dump
from probes.micro.catalogue import Extent
from probes.micro.listener import Listener

# Only pytest-benchmark may take part: a plugin or an option that someone uses elsewhere must not change a measurement.
ENVIRONMENT = {**dump.ENVIRONMENT, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}


def run_benchmark(
    *,
    module: str,
    ir: str,
    device: str,
    extent: str,
    repetitions: int | None,
    budget_s: float | None,
    head: str | None,
    draft: str | None,
    scratch: str,
    emit: Callable[[JsonValue], None],
) -> JsonValue:
    """Run one module, or one test of it, and return pytest-benchmark's entry; `scratch` is a folder the caller removes.

    Raises:
        RuntimeError: the benchmark failed, in the words of what failed.
    """
    folder = Path(__file__).resolve().parent
    name, separator, test = module.partition("::")
    listener = Listener(emit)
    written = Path(scratch) / "benchmark.json"
    arguments = [
        f"{folder / name}.py{separator}{test}",
        *("-c", os.devnull, "--rootdir", str(folder.parents[1]), "--import-mode=importlib"),
        *("-p", "pytest_benchmark.plugin", "-p", "no:cacheprovider", "-o", "python_files=bench_*.py", "-q"),
        *("--benchmark-json", str(written), "--benchmark-storage", f"file://{scratch}", "--benchmark-disable-gc"),
        *("--basetemp", str(Path(scratch) / "tmp")),
        *("--ir", ir, "--device", device),
        *([] if extent == Extent.WHOLE else [f"--{extent}"]),
        *(["--repetitions", str(repetitions)] if repetitions else []),
        *(["--budget", str(budget_s)] if budget_s else []),
        *(["--head", head] if head else []),
        *(["--draft", draft] if draft else []),
    ]
    pytest.main(arguments, plugins=[listener])
    entries = json.loads(written.read_bytes())["benchmarks"] if written.exists() and written.stat().st_size else []
    if len(entries) != 1 or listener.words:
        raise RuntimeError("; ".join(listener.words) or f"{len(entries)} benchmarks ran; expected 1")
    entry: JsonValue = entries[0]
    return entry
