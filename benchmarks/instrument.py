"""Hold the load instrument against a server that knows what it sent: the errors, the cost, and the goals beside them.

    python -m benchmarks.instrument                       the whole table, about ten minutes
    python -m benchmarks.instrument --streams 64 --repeat 1
    python -m benchmarks.instrument --write               also docs/instrument-figures.md
    python -m benchmarks.instrument --peers --tokenizer DIR   other tools too, those that are installed

`--peers` takes folders that hold programs, such as the bin of a virtual environment; others are sought on PATH.

Server and client run on the machine this runs on, and every error is taken against the server's own log of what it
sent when. Other work on the machine makes the figures worse; its load average stands in the result.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks import peers, verdicts
from probes.ending import carry_out, leave
from probes.load.statistics import percentile

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "instrument-figures.md"
STREAMS: Final = (1, 16, 64, 128)
TTFT_MS, ITL_MS, TOKENS = 50, 10, 64
_SECONDS: Final = 8.0
_LATENCY_S: Final = (TTFT_MS + (TOKENS - 1) * ITL_MS) / 1e3
_SAMPLE_S: Final = 0.25
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


@dataclass(frozen=True, kw_only=True)
class Figures:
    """One run held against the truth. Errors are shares of the true value; `carried` is tokens of the ideal rate."""

    streams: int
    valid: bool
    reasons: tuple[str, ...]
    ttft_p50: float
    ttft_p95: float
    itl_p50: float
    carried: float
    tok_s: float
    cpu_ms: float
    cpu_all_ms: float
    memory_mb: float
    server_late_p95_ms: float
    load_average: float


@dataclass(frozen=True, kw_only=True)
class Goal:
    """One row of the table: what is shown, how, and the bound for each number of streams."""

    title: str
    name: str
    bounds: dict[int, float]
    unit: str = " %"
    scale: float = 100.0
    at_least: bool = False


GOALS: Final = (
    Goal(title="TTFT p50 error", name="ttft_p50", bounds={1: 0.02, 16: 0.02, 64: 0.03, 128: 0.05}),
    Goal(title="TTFT p95 error", name="ttft_p95", bounds={64: 0.12, 128: 0.25}),
    Goal(title="ITL p50 error", name="itl_p50", bounds={1: 0.01, 16: 0.01, 64: 0.01, 128: 0.01}),
    Goal(title="load carried", name="carried", bounds={128: 0.95}, at_least=True),
    Goal(title="client CPU per 1,000 tokens, load window", name="cpu_ms", bounds={64: 110.0}, unit=" ms", scale=1.0),
    Goal(title="client CPU per 1,000 tokens, start to report", name="cpu_all_ms", bounds={}, unit=" ms", scale=1.0),
    Goal(title="peak memory, all processes", name="memory_mb", bounds={128: 120.0}, unit=" MB", scale=1.0),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, and say with the exit code whether every goal is reached."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, nargs="+", default=list(STREAMS))
    parser.add_argument("--repeat", type=int, default=5, help="runs of each level; the table shows medians")
    parser.add_argument("--seconds", type=float, default=_SECONDS, help="about how long each run measures")
    parser.add_argument("--workers", type=int, help="worker processes (default: the instrument's own choice)")
    parser.add_argument("--peers", type=Path, nargs="*", metavar="FOLDER", help="measure other tools as well")
    parser.add_argument("--tokenizer", default="", metavar="DIR", help="a Hugging Face tokenizer, for peers")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    given = parser.parse_args(arguments)
    results: dict[int, list[Figures]] = {streams: [] for streams in given.streams}
    with truth_server() as port:
        for turn in range(given.repeat):
            for streams in given.streams:
                figures = measure(port, streams, given.seconds, given.workers)
                results[streams].append(figures)
                sys.stdout.write(f"{turn + 1}/{given.repeat} {figures}\n")
                sys.stdout.flush()
        beside = _peers(port, given) if given.peers is not None else []
    text = table(results)
    if beside:
        text += "\n\n" + peer_table(beside, given.streams)
    simulated = verdicts.every()
    sys.stdout.write(f"\n{text}\n\n{verdicts.table(simulated)}\n")
    if given.write:
        PAGE.write_text(page(results, text, verdicts.table(simulated)), encoding="utf-8")
    return 0 if all(reached(goal, results) for goal in GOALS) and verdicts.reached(simulated) else 1


def _peers(port: int, given: argparse.Namespace) -> list[PeerRow]:
    """Measure each peer that is installed once at each level, on the same server and machine."""
    rows = []
    for peer in peers.PEERS:
        program = peers.find(peer, given.peers)
        row = PeerRow(name=peer.name, installed=program is not None)
        rows.append(row)
        if program is None:
            continue
        for streams in given.streams:
            with tempfile.TemporaryDirectory(prefix="peer-") as folder:
                task = peers.Task(
                    url=f"http://127.0.0.1:{port}",
                    streams=streams,
                    requests=_requests(streams, given.seconds),
                    tokens=TOKENS,
                    tokenizer=given.tokenizer,
                    folder=Path(folder),
                )
                row.levels[streams] = measure_peer(port, peer, program, task)
            sys.stdout.write(f"{peer.name} at {streams}: {row.levels[streams]}\n")
            sys.stdout.flush()
    return rows


@dataclass(kw_only=True)
class PeerRow:
    """One peer at every level: how far it was from the truth, or its last words."""

    name: str
    installed: bool
    levels: dict[int, PeerFigures | str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PeerFigures:
    """What a peer reports held against the truth; errors are shares of the true value, None for what it does not report."""

    requests: int
    ttft_p50: float | None
    ttft_p95: float | None
    itl_p50: float | None
    carried: float
    cpu_all_ms: float
    load_average: float


def measure_peer(port: int, peer: peers.Peer, program: Path, task: peers.Task) -> PeerFigures | str:
    """Run one peer and hold the percentiles it reports against those of the server's log."""
    load_average = os.getloadavg()[0]
    truth(port)
    try:
        told, cpu_s = peers.measure(peer, program, task)
    except peers.PeerError as exc:
        return str(exc)
    return hold_peer(told, truth(port), task.streams, cpu_s, load_average)


def hold_peer(
    told: peers.Told, log: Sequence[dict[str, Any]], streams: int, cpu_s: float, load_average: float
) -> PeerFigures | str:
    """Compare percentiles of everything that was sent: a peer does not say which request is which."""
    every = [line for line in log if line["sent_ns"]]
    if not every:
        return "it sent no request"
    ttft = sorted((line["sent_ns"][0] - line["received_ns"]) / 1e9 for line in every)
    gaps = sorted((b - a) / 1e9 for line in every for a, b in zip(line["sent_ns"], line["sent_ns"][1:], strict=False))
    first, last = min(line["received_ns"] for line in every), max(line["sent_ns"][-1] for line in every)
    tokens = sum(len(line["sent_ns"]) for line in every)
    return PeerFigures(
        requests=told.requests,
        ttft_p50=_error(told.ttft_p50_s, ttft, 0.5),
        ttft_p95=_error(told.ttft_p95_s, ttft, 0.95),
        itl_p50=_error(told.itl_p50_s, gaps, 0.5),
        carried=tokens / ((last - first) / 1e9) / _ideal(streams),
        cpu_all_ms=cpu_s / tokens * 1e6,
        load_average=load_average,
    )


def peer_table(rows: Sequence[PeerRow], levels: Sequence[int]) -> str:
    """Write what each peer reported beside the truth; one that is not here says so."""
    lines = ["| | " + " | ".join(f"{streams} streams" for streams in levels) + " |", "|---|" + "---|" * len(levels)]
    for row in rows:
        cells = [_peer_cell(row.levels[streams]) for streams in levels] if row.installed else ["not installed"] * len(levels)
        lines.append(f"| {row.name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _peer_cell(found: PeerFigures | str) -> str:
    if isinstance(found, str):
        return f"failed: {found.replace('|', '/')}"
    errors = (("TTFT p50", found.ttft_p50), ("p95", found.ttft_p95), ("ITL p50", found.itl_p50))
    shown = ", ".join(f"{name} {'not reported' if value is None else f'{value * 100:+.1f} %'}" for name, value in errors)
    return f"{shown}; {found.carried * 100:.0f} % carried, {found.cpu_all_ms:.0f} ms CPU; load average {found.load_average:.1f}"


def _error(told_s: float | None, true: Sequence[float], share: float) -> float | None:
    return None if told_s is None else told_s / percentile(true, share) - 1


def _ideal(streams: int) -> float:
    return streams * TOKENS / _LATENCY_S


def _requests(streams: int, seconds: float) -> int:
    return max(20, round(streams * seconds / _LATENCY_S))


@contextlib.contextmanager
def truth_server(*arguments: str) -> Iterator[int]:
    """Run the truth server, undisturbed by other processes where this user may ask for that; gives its port."""
    realtime = ["--realtime"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    command = [sys.executable, "-m", "benchmarks.truth_server", "--ttft-ms", str(TTFT_MS), "--itl-ms", str(ITL_MS)]
    process = subprocess.Popen([*command, *realtime, *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True)  # noqa: S603
    try:
        if process.stdout is None:
            raise RuntimeError("the truth server has no standard output")
        yield int(process.stdout.readline())
    finally:
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def truth(port: int) -> list[dict[str, Any]]:
    """Take and clear the server's log."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/truth") as answer:
        log: list[dict[str, Any]] = json.load(answer)
    return log


def measure(port: int, streams: int, seconds: float, workers: int | None) -> Figures:
    """Run the load command as a user would, and hold its file against the server's log."""
    requests = _requests(streams, seconds)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "load.json"
        command = [sys.executable, "-m", "probes", "load", "--url", f"http://127.0.0.1:{port}", "--model", "truth"]
        command += ["--concurrency", str(streams), "--requests", str(requests), "--max-tokens", str(TOKENS)]
        command += ["--json", str(file), *(["--workers", str(workers)] if workers else [])]
        truth(port)
        before = os.times()
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # noqa: S603
        memory = _peak_memory(process)
        said = process.communicate()[0]
        after = os.times()
        if not file.exists():
            raise RuntimeError(f"the load command wrote nothing: {said}")
        document = json.loads(file.read_text(encoding="utf-8"))
    log = truth(port)
    return hold_against(document, log, streams, memory, (after[2] + after[3]) - (before[2] + before[3]))


def hold_against(
    document: dict[str, Any], log: Sequence[dict[str, Any]], streams: int, memory_bytes: int, cpu_s: float
) -> Figures:
    """Compare the requests that were measured with the same requests in the server's log, which are matched by order."""
    every = [line for line in log if len(line["sent_ns"]) == TOKENS]
    every.sort(key=lambda line: int(line["received_ns"]))
    rows = sorted((row for row in document["requests"] if row["error"] is None), key=lambda row: float(row["sent_s"]))
    pairs = [line for row, line in zip(rows, every, strict=True) if row["phase"] == "measured"]
    ttft = sorted((line["sent_ns"][0] - line["received_ns"]) / 1e9 for line in pairs)
    gaps = sorted((b - a) / 1e9 for line in pairs for a, b in zip(line["sent_ns"], line["sent_ns"][1:], strict=False))
    late = sorted(
        (at - line["received_ns"]) / 1e6 - TTFT_MS - n * ITL_MS for line in pairs for n, at in enumerate(line["sent_ns"])
    )
    metrics, instrument = document["metrics"], document["instrument"]
    first, last = min(line["received_ns"] for line in pairs), max(line["sent_ns"][-1] for line in pairs)
    inside = sum(first < at <= last for line in every for at in line["sent_ns"])
    tok_s = inside / ((last - first) / 1e9)
    tokens = sum(len(line["sent_ns"]) for line in every)
    return Figures(
        streams=streams,
        valid=bool(document["valid"]),
        reasons=tuple(document["reasons"]),
        ttft_p50=metrics["ttft_s"]["p50"] / percentile(ttft, 0.5) - 1,
        ttft_p95=metrics["ttft_s"]["p95"] / percentile(ttft, 0.95) - 1,
        itl_p50=metrics["itl_s"]["p50"] / percentile(gaps, 0.5) - 1 if metrics["itl_s"]["p50"] else float("nan"),
        carried=tok_s / _ideal(streams),
        tok_s=tok_s,
        cpu_ms=(instrument["cores_used"] or float("nan")) / tok_s * 1e6,
        cpu_all_ms=cpu_s / tokens * 1e6,
        memory_mb=memory_bytes / 1e6,
        server_late_p95_ms=percentile(late, 0.95),
        load_average=os.getloadavg()[0],
    )


def table(results: dict[int, list[Figures]]) -> str:
    """Write figure and goal of every row side by side, the median of all runs of a level."""
    heads = [f"{streams} stream{'s' if streams > 1 else ''}" for streams in results]
    lines = ["| | " + " | ".join(heads) + " |", "|---|" + "---|" * len(heads)]
    for goal in GOALS:
        cells = [_cell(goal, streams, runs) for streams, runs in results.items()]
        lines.append(f"| {goal.title} | " + " | ".join(cells) + " |")
    valid = [f"{sum(run.valid for run in runs)} of {len(runs)}" for runs in results.values()]
    lines.append("| runs the instrument called valid | " + " | ".join(valid) + " |")
    late = [f"{_median(runs, 'server_late_p95_ms'):.2g} ms" for runs in results.values()]
    lines.append("| sends of the server late, p95 | " + " | ".join(late) + " |")
    loads = [f"{_median(runs, 'load_average'):.1f}" for runs in results.values()]
    lines.append("| load average of the machine | " + " | ".join(loads) + " |")
    return "\n".join(lines)


def page(results: dict[int, list[Figures]], text: str, simulated: str) -> str:
    """Write the page that keeps the last result."""
    day = time.strftime("%Y-%m-%d", time.gmtime())
    runs = max(len(one) for one in results.values())
    return f"""# How near the truth it is

Written by `python -m benchmarks.instrument --write` on {day}, on {os.cpu_count()} cores ({platform.system()} \
{platform.machine()}, Python {platform.python_version()}); server and client shared them. The server sends the first \
token after {TTFT_MS} ms and {TOKENS} tokens {ITL_MS} ms apart, and logs when it sent each. Every figure is the median of \
{runs} runs, with the goal behind it. How the figures are defined stands in [the instrument](instrument.md).

{text}

*Load carried* is the rate at which the server sent tokens, as a share of what that many streams can take.
*Load window* counts the workers' processor time while requests were measured; *start to report* counts everything, from
the start of Python to the written file. A run that fell behind has to say so: one that the instrument called invalid
counts here all the same. A percentile or gap that a run withheld is in no median.

## How often the rule of comparison is wrong

Simulated, and the same on any machine: {verdicts.COMPARISONS} comparisons of a thing with itself over the whole \
[contract](contract.md), and as many of a thing whose first token comes a quarter faster. Every quantity scatters by \
the noise, and the machine drifts by as much again over a run.

{simulated}
"""


def reached(goal: Goal, results: dict[int, list[Figures]]) -> bool:
    """Tell whether the medians of all levels keep a goal's bounds."""
    return all(_keeps(goal, bound, _median(results[n], goal.name)) for n, bound in goal.bounds.items() if n in results)


def _cell(goal: Goal, streams: int, runs: Sequence[Figures]) -> str:
    value = _median(runs, goal.name)
    shown = f"{value * goal.scale:.{1 if goal.scale == 100 else 0}f}{goal.unit}"
    bound = goal.bounds.get(streams)
    if bound is None:
        return shown
    word = "at least" if goal.at_least else "under"
    mark = "" if _keeps(goal, bound, value) else " **missed**"
    return f"{shown} ({word} {bound * goal.scale:g}){mark}"


def _keeps(goal: Goal, bound: float, value: float) -> bool:
    return value >= bound if goal.at_least else abs(value) < bound


def _median(runs: Sequence[Figures], name: str) -> float:
    """Take the median of the runs that published the figure; what was withheld has no error."""
    values = [value for run in runs if not math.isnan(value := float(getattr(run, name)))]
    return statistics.median(values) if values else math.nan


def _peak_memory(process: subprocess.Popen[str]) -> int:
    """Give the most resident memory that the process and its children held together, looked at four times a second."""
    peak = 0
    while process.poll() is None:
        held = 0
        for pid in (process.pid, *_children(process.pid)):
            with contextlib.suppress(OSError, ValueError):
                held += int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES
        peak = max(peak, held)
        time.sleep(_SAMPLE_S)
    return peak


def _children(pid: int) -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]
    except OSError:
        return []


if __name__ == "__main__":
    leave(carry_out("benchmarks.instrument", main, stopped="stopped"))
