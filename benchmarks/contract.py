"""Full contract runs against real servers, and what comes of comparing them.

    python -m benchmarks.contract                  everything, about twenty minutes on two idle cores
    python -m benchmarks.contract prefix-caching   one of them

Evidence goes to a folder that is printed at the end of each; the exit code says whether every comparison came out as
expected: prefix caching with a shared prefix *better* on TTFT, the same thing twice neither better nor worse.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gen.comparability import sides_of
from gen.contract import QUANTITIES, ContractMetric
from gen.judgement import judge_run
from gen.spread import summary
from gen.words import Verdict
from probes.archive import read_run
from probes.ending import carry_out, leave
from probes.evidence import Run
from probes.fleet import Gates
from tests.engines.llamacpp import llamacpp

ROOT: Final = Path(__file__).parents[1]
_NEUTRAL: Final = frozenset({Verdict.SAME, Verdict.INCONCLUSIVE})


@contextlib.contextmanager
def nothing() -> Iterator[str]:
    """Start nothing: the embedded engine is started by the command."""
    yield "embedded"


@dataclass(frozen=True, kw_only=True)
class Case:
    """One run: its sides, where ADDRESS stands for a server that is started for it, and the verdicts that TTFT may get."""

    words: Sequence[str]
    ttft: frozenset[Verdict] = frozenset()
    server: Callable[[], contextlib.AbstractContextManager[str]] = nothing


_FULL: Final = ("--requests", "20", "--max-tokens", "16", "--quality-repetitions", "1", "--budget-s", "1800")
_LIGHT: Final = ("--requests", "4", "--max-tokens", "8", "--quality-repetitions", "0")
_SHARED: Final = ("--prompt", "medium", "--shared-prefix", "1")
CASES: Final[Mapping[str, Case]] = {
    "embedded": Case(words=("embedded", *_FULL)),
    "llama.cpp": Case(words=("ADDRESS", *_FULL), server=lambda: llamacpp("n_parallel=1")),
    "prefix-caching": Case(
        words=("embedded:enable_prefix_caching=false", "embedded:enable_prefix_caching=true", *_SHARED, *_LIGHT),
        ttft=frozenset({Verdict.BETTER}),
    ),
    "same-twice": Case(words=("embedded", "embedded", *_LIGHT), ttft=_NEUTRAL),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the chosen cases, print what each brought, and say whether all came out as expected."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"{', '.join(CASES)} (default: all)")
    chosen = parser.parse_args(arguments).cases or list(CASES)
    if unknown := [name for name in chosen if name not in CASES]:
        parser.error(f"{unknown[0]}: is not one of {', '.join(CASES)}")
    out = Path(tempfile.mkdtemp(prefix="contract-"))
    held = [_case(name, CASES[name], out) for name in chosen]
    return 0 if all(held) else 1


def _case(name: str, case: Case, out: Path) -> bool:
    with case.server() as address:
        words = [address if word == "ADDRESS" else word for word in case.words]
        command = [sys.executable, "-m", "probes", "contract", *words, "--out", str(out)]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603
    path = Path(done.stdout.strip().splitlines()[-1]) if done.stdout.strip() else None
    if path is None:
        sys.stdout.write(f"{name}: nothing was written\n")
        return False
    run = read_run(path)
    sys.stdout.write(f"\n{name}: {path}\n")
    for line in _lines(run):
        sys.stdout.write(f"  {line}\n")
    if not run.validity.valid:
        sys.stdout.write(f"  INVALID: {'; '.join(run.validity.reasons)}\n")
        return False
    if not case.ttft:
        return True
    verdict = judge_run(run, Gates()).rows[ContractMetric.TTFT].verdict
    expected = verdict in case.ttft
    sys.stdout.write(f"  TTFT: {verdict.value}{'' if expected else ' **not as expected**'}\n")
    return expected


def _lines(run: Run) -> Iterator[str]:
    """Say for every quantity and side what was measured, or why not."""
    for arm in [arm.name for arm in run.arms] or [""]:
        for metric, quantity in QUANTITIES.items():
            found = [one for name in quantity.names if (one := run.metric(name, arm)) is not None]
            best = next((one for one in found if one.samples), found[-1] if found else None)
            yield f"{arm:10}{metric.value:14}{'no such metric' if best is None else summary(best)}"
    if run.validity.valid and sides_of(run) is not None:
        judged = judge_run(run, Gates())
        yield f"verdict: {judged.verdict.value}; " + ", ".join(
            f"{m.value} {row.verdict.value}" for m, row in judged.rows.items()
        )


if __name__ == "__main__":
    leave(carry_out("benchmarks.contract", main, stopped="stopped"))
