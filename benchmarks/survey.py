"""Survey two hundred addresses, half of them unreachable or hanging: how long, how much memory, how many connections.

    python -m benchmarks.survey                  200 addresses, held against the goals
    python -m benchmarks.survey --services 60

The servers run in a process of their own on 127.0.0.1; memory and connections are those of this one. Exit 1 when a goal
is missed, a state is wrong, or the order of the results is not that of the inventory.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Self

import psutil

from benchmarks.survey_servers import BAD, GOOD
from probes import __version__, strictyaml
from probes.context import Context
from probes.ending import carry_out, leave
from probes.endpoints.probe import Means, Pacing, survey
from probes.evidence import EndpointState, Run, Tool
from probes.fleet import Fleet, ProbeLimits
from probes.host import read_host
from probes.redaction import Redactor

ROOT: Final = Path(__file__).parents[1]
GOAL_S: Final = 30.0
GOAL_BYTES: Final = 200 * 2**20
# One connection at a time for each address, and what the process holds open anyway.
GOAL_CONNECTIONS: Final = 256
# How long after its start a service that answers may take beside a hundred that do not.
GOAL_ANSWER_S: Final = 10.0
STATES: Final = {
    "ovms": EndpointState.GENERATING,
    "vllm": EndpointState.GENERATING,
    "ollama": EndpointState.LISTED,
    "comfyui": EndpointState.LISTED,
    "tei": EndpointState.LISTED,
    "refused": EndpointState.NOT_REACHABLE,
    "unreachable": EndpointState.NOT_REACHABLE,
    "silent": EndpointState.NOT_REACHABLE,
    "head only": EndpointState.NOT_REACHABLE,
    "drips": EndpointState.NOT_REACHABLE,
    "hangs on text": EndpointState.HANGS,
    "comments for ever": EndpointState.HANGS,
    "loads for ever": EndpointState.LOADING,
    "login": EndpointState.NEEDS_LOGIN,
    "another protocol": EndpointState.NOT_AN_INFERENCE_SERVER,
}


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What one survey took, and what was wrong about it. `told_s` is how long an address of each kind took at most."""

    services: int
    wall_s: float
    memory_bytes: int
    connections: int
    told_s: dict[str, float]
    wrong: tuple[str, ...]

    @property
    def missed(self) -> tuple[str, ...]:
        """Name the goals that were missed."""
        answered = max((at for kind, at in self.told_s.items() if kind in GOOD), default=0.0)
        goals = (
            (self.wall_s < GOAL_S, f"it took {self.wall_s:.1f} s; the goal is {GOAL_S:g} s"),
            (
                self.memory_bytes < GOAL_BYTES,
                f"it took {self.memory_bytes / 2**20:.0f} MiB; the goal is {GOAL_BYTES / 2**20:.0f}",
            ),
            (self.connections <= GOAL_CONNECTIONS, f"{self.connections} connections at once; the goal is {GOAL_CONNECTIONS}"),
            (answered < GOAL_ANSWER_S, f"an address that answers took {answered:.1f} s; the goal is {GOAL_ANSWER_S:g} s"),
        )
        return (*self.wrong, *(words for reached, words in goals if not reached))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--services", type=int, default=200, help="how many addresses (default: 200)")
    arguments = parser.parse_args(argv)
    with servers(arguments.services) as kinds:
        figures = measure(kinds)
    print("\n".join(lines(figures)))  # noqa: T201
    return 1 if figures.missed else 0


@contextlib.contextmanager
def servers(count: int) -> Iterator[list[tuple[str, int]]]:
    """Run the servers; gives the kind and the port of each, in the order of the inventory."""
    command = [sys.executable, "-m", "benchmarks.survey_servers", str(count)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            assert process.stdout is not None  # noqa: S101
            yield [(kind, port) for kind, port in json.loads(process.stdout.readline())]
        finally:
            process.kill()


def measure(kinds: Sequence[tuple[str, int]], *, pacing: Pacing | None = None, silence_s: float | None = None) -> Figures:
    """Survey the servers once, as `nox -s probe` would unless told to wait for less long."""
    pacing = pacing or Pacing()
    names = [f"s{place:03}-{kind.replace(' ', '-')}" for place, (kind, _) in enumerate(kinds)]
    limits = ProbeLimits() if silence_s is None else ProbeLimits(silence_s=silence_s)
    told: dict[str, float] = {}
    began = time.perf_counter()

    def say(line: str) -> None:
        told[line.partition(":")[0]] = time.perf_counter() - began

    context, fleet = _context(say), _fleet(names, [port for _, port in kinds], limits)
    means = Means(pacing=pacing)
    with _Connections() as connections:
        began = time.perf_counter()
        _, seen = survey(context, fleet, {}, means=means)
        wall_s = time.perf_counter() - began
    return Figures(
        services=len(kinds),
        wall_s=wall_s,
        memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        connections=connections.most,
        told_s=_latest(told, names, [kind for kind, _ in kinds], pacing),
        wrong=tuple(_wrong(seen, names, [kind for kind, _ in kinds])),
    )


def lines(figures: Figures) -> Iterator[str]:
    """Print the figures and, for each kind of server, when its last one was done."""
    yield f"{figures.services} addresses: {figures.wall_s:.1f} s, {figures.memory_bytes / 2**20:.0f} MiB at most,"
    yield f"  {figures.connections} connections at most, load average {os.getloadavg()[0]:.1f}"
    for kind in (*GOOD, *BAD):
        if kind in figures.told_s:
            yield f"  {kind:18} {STATES[kind]:26} {figures.told_s[kind]:5.1f} s at most"
    yield from (f"MISSED: {words}" for words in figures.missed)


def _latest(told: Mapping[str, float], names: Sequence[str], kinds: Sequence[str], pacing: Pacing) -> dict[str, float]:
    """Give the longest time that an address of each kind took, since its own turn to start."""
    took: dict[str, float] = {}
    for place, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        took[kind] = max(took.get(kind, 0.0), told[name] - place * pacing.apart_s)
    return took


def _wrong(seen: Run, names: Sequence[str], kinds: Sequence[str]) -> Iterator[str]:
    if list(seen.survey) != list(names):
        yield "the results are not in the order of the inventory"
    wrong = Counter(
        f"{kind} is {seen.survey[name].state} ({seen.survey[name].detail})"
        for name, kind in zip(names, kinds, strict=True)
        if seen.survey[name].state is not STATES[kind]
    )
    yield from (f"{count} times: {words}" for words, count in wrong.items())


def _fleet(names: Sequence[str], ports: Sequence[int], limits: ProbeLimits) -> Fleet:
    unknown = '{unknown: "?"}'
    services = "".join(
        f"  {name}: {{title: {name}, kind: text generation, runtime: openai-compatible, runtime_version: {unknown}, "
        f'host: {unknown}, device: {unknown}, url: "http://127.0.0.1:{port}", probing: {{silence_s: {limits.silence_s:g}}}}}\n'
        for name, port in zip(names, ports, strict=True)
    )
    head = "schema: inference-adr/fleet/1\nname: Benchmark\nas_of: 2026-11-30\nsource: a benchmark\nhosts: {}\ndevices: {}\n"
    text = f"{head}services:\n{services}embedded: {{title: Embedded, settings: {{}}}}\n"
    return strictyaml.loads(text, Fleet, "benchmark")


def _context(say: Callable[[str], None]) -> Context:
    return Context(
        root=ROOT,
        evidence=ROOT,
        cache=ROOT,
        client=read_host(),
        tool=Tool(version=__version__, git_revision="benchmark", command="python -m benchmarks.survey"),
        redact=Redactor(),
        clock=lambda: datetime.now(UTC),
        say=say,
    )


class _Connections:
    """Counts the open files of this process beyond those it began with, twenty times a second: they are its connections."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._before = self._process.num_fds()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._count, daemon=True)
        self.most = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._over.set()
        self._thread.join()

    def _count(self) -> None:
        while not self._over.wait(0.05):
            self.most = max(self.most, self._process.num_fds() - self._before)


if __name__ == "__main__":
    leave(carry_out("benchmarks.survey", main, stopped="stopped"))
