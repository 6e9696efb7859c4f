"""How often the rule of comparison is wrong: the same thing compared with itself, and a true gain, both simulated.

    python -m benchmarks.verdicts

Deterministic: the numbers are the same on any machine. A simulated machine scatters every quantity log-normally by a
share of its value, and its mood drifts by as much again over a run, on both sides alike as interleaving has it.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from gen.contract import ContractMetric
from gen.judgement import judge_run
from gen.words import Verdict
from probes.ending import carry_out, leave
from probes.evidence import (
    Arm,
    Direction,
    Host,
    HostTuning,
    LocalScope,
    Metric,
    Missing,
    MissingReason,
    Per,
    Run,
    RunKind,
    Tool,
    Validity,
)
from probes.fleet import Gates

COMPARISONS: Final = 200
NOISES: Final = (0.02, 0.05, 0.1, 0.2, 0.3)
REPETITIONS: Final = (6, 10)
GAIN: Final = 1.25
FALSE_AT_MOST, FOUND_AT_LEAST = 2, 0.95
_LOWER, _HIGHER = Direction.LOWER, Direction.HIGHER
_QUANTITIES: Final = (
    ("ttft_s", "s", _LOWER, 0.4),
    ("decode_tok_s", "tok/s", _HIGHER, 60.0),
    ("aggregate_tok_s", "tok/s", _HIGHER, 50.0),
    ("p95_latency_s", "s", _LOWER, 0.9),
    ("error_rate", "ratio", _LOWER, 0.0),
    ("memory_bytes", "bytes", _LOWER, 5.5e8),
    ("power_w", "W", _LOWER, 90.0),
    ("task_quality", "share", _HIGHER, 0.62),
)
# What does not scatter with the machine's mood: counts that are zero, and answers that are the same each time.
_FIXED: Final = frozenset({"error_rate", "task_quality"})
_UNTOLD: Final = Missing(missing=MissingReason.NOT_APPLICABLE, detail="simulated")
_AT: Final = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Wrong:
    """One cell of the table."""

    noise: float
    repetitions: int
    false: int
    found: int


def verdicts(seed: int, *, noise: float, repetitions: int, gain: float = 1.0) -> Mapping[ContractMetric, Verdict]:
    """Compare two simulated sides over the whole contract; the candidate's first token comes `gain` times sooner."""
    chance = random.Random(seed)  # noqa: S311 - a simulation, not a secret
    moods = [1 + noise * n / repetitions for n in range(repetitions)]
    metrics = [
        Metric(
            name=name,
            unit=unit,
            direction=direction,
            per=Per.REPETITION,
            arm=arm,
            samples=tuple(_sample(name, middle / (factor if name == "ttft_s" else 1), mood, noise, chance) for mood in moods),
        )
        for arm, factor in (("baseline", 1.0), ("candidate", gain))
        for name, unit, direction, middle in _QUANTITIES
    ]
    return {metric: row.verdict for metric, row in judge_run(_run(metrics), Gates()).rows.items()}


def wrong(noise: float, repetitions: int, comparisons: int = COMPARISONS) -> Wrong:
    """Count comparisons of a thing with itself that find a difference, and true gains that are found."""
    told = {Verdict.BETTER, Verdict.WORSE}
    alone = [verdicts(seed, noise=noise, repetitions=repetitions) for seed in range(comparisons)]
    faster = [verdicts(seed, noise=noise, repetitions=repetitions, gain=GAIN) for seed in range(comparisons)]
    return Wrong(
        noise=noise,
        repetitions=repetitions,
        false=sum(bool(told & set(one.values())) for one in alone),
        found=sum(one[ContractMetric.TTFT] is Verdict.BETTER for one in faster),
    )


def table(found: Sequence[Wrong]) -> str:
    """Write the table of all cells, with the goals in its head."""
    lines = [
        f"| noise | repetitions | false better or worse in {COMPARISONS} (at most {FALSE_AT_MOST}) | true 25 % gain found |",
        "|---|---|---|---|",
    ]
    for one in found:
        share = f"{one.found / COMPARISONS:.0%}"
        goal = " (at least 95 %)" if (one.noise, one.repetitions) == (0.02, 10) else ""
        lines.append(f"| {one.noise:.0%} | {one.repetitions} | {one.false} | {share}{goal} |")
    return "\n".join(lines)


def reached(found: Sequence[Wrong]) -> bool:
    """Tell whether both goals are reached."""
    gains = [one.found for one in found if (one.noise, one.repetitions) == (0.02, 10)]
    return all(one.false <= FALSE_AT_MOST for one in found) and all(n >= FOUND_AT_LEAST * COMPARISONS for n in gains)


def every() -> list[Wrong]:
    """Simulate every cell."""
    return [wrong(noise, repetitions) for noise in NOISES for repetitions in REPETITIONS]


def main() -> int:
    """Print the table, and say with the exit code whether the goals are reached."""
    found = every()
    sys.stdout.write(table(found) + "\n")
    return 0 if reached(found) else 1


def _sample(name: str, middle: float, mood: float, noise: float, chance: random.Random) -> float:
    return middle if name in _FIXED else middle * mood * chance.lognormvariate(0, noise)


def _run(metrics: Sequence[Metric]) -> Run:
    return Run(
        id="simulated",
        kind=RunKind.CONTRACT,
        subject="simulated",
        started_at=_AT,
        ended_at=_AT,
        scope=LocalScope(fingerprint="simulated"),
        tool=Tool(version="0", git_revision=_UNTOLD, command="simulated"),
        client=_HOST,
        server=_UNTOLD,
        device=_UNTOLD,
        runtime=_UNTOLD,
        model=_UNTOLD,
        serving_sha256=_UNTOLD,
        load=_UNTOLD,
        decoding=_UNTOLD,
        validity=Validity(valid=True),
        arms=(Arm(name="baseline", role="baseline"), Arm(name="candidate", role="candidate")),
        metrics=tuple(metrics),
    )


_HOST: Final = Host(
    alias="simulated",
    fingerprint="simulated",
    cpu="simulated",
    isa=(),
    physical_cores=2,
    logical_cores=2,
    memory_bytes=2**34,
    os="simulated",
    kernel="simulated",
    driver=_UNTOLD,
    tuning=HostTuning(
        governor=_UNTOLD,
        huge_pages=_UNTOLD,
        transparent_huge_pages=_UNTOLD,
        swap_bytes=_UNTOLD,
        numa_nodes=_UNTOLD,
        container_cpu_limit=_UNTOLD,
        container_memory_bytes=_UNTOLD,
    ),
)


if __name__ == "__main__":
    leave(carry_out("benchmarks.verdicts", main, stopped="stopped"))
