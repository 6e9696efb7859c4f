"""The words of `python -m probes contract`, read and held against what can be meant."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from probes.contract.shape import FEWEST_FOR_P95, FEWEST_REPETITIONS, MOST_REPETITIONS, ContractShape
from probes.contract.side import EXPECTED, Side, SideKind
from probes.errors import UsageError
from probes.evidence import Missing
from probes.fleet import INVENTORY, Fleet
from probes.load.objective import Objective, of_workload, parse_slo
from probes.load.prompts import PromptKind

_PLAIN: Final = ContractShape()
_MOST_SIDES: Final = 2


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add every option of a contract run to its parser."""
    add = command.add_argument
    add("sides", nargs="+", metavar="SIDE", help=f"one side, or baseline and candidate: {EXPECTED}")
    add_shape(command)
    add("--slo", default="", metavar="NAME=BOUND,...", help="what a good request keeps: ttft_s=0.5,tpot_s=0.05")
    add("--workload", metavar="NAME", help="take the SLO of this workload (default: that of the sides' workload)")
    add("--model", metavar="ID", help="the model to ask at an address (default: the first that is ready)")
    add("--key-env", metavar="NAME", help="environment variable that holds the key of an address")
    add("--ca-file", metavar="FILE", help="certificate authority to trust for an address")
    add("--insecure", action="store_true", help="do not verify TLS of an address; the result says so")
    add("--allow-load", action="store_true", help="put load on an address that is neither this machine nor in the inventory")
    add("--fleet", type=Path, default=INVENTORY, metavar="FILE", help="the inventory, if there is one")
    add("--out", type=Path, default=Path("adr/local/evidence"), metavar="DIR", help="where evidence goes")
    add("--json", action="store_true", help="print the whole run as JSON")


def add_shape(command: argparse.ArgumentParser) -> None:
    """Add the options that say how much is asked."""
    add = command.add_argument
    add("--repetitions", type=int, default=_PLAIN.repetitions, metavar="N", help="blocks a side (default: %(default)s)")
    add("--requests", type=int, default=_PLAIN.requests, metavar="M", help=f"of a block; a p95 takes {FEWEST_FOR_P95}")
    add("--concurrency", type=int, default=_PLAIN.concurrency, metavar="N", help="at a time (default: %(default)s)")
    add("--max-tokens", type=int, default=_PLAIN.max_tokens, metavar="K", help="of an answer (default: %(default)s)")
    add("--prompt", choices=[str(one) for one in PromptKind], default=str(_PLAIN.prompt), help="what is asked")
    add("--shared-prefix", type=float, default=0.0, metavar="SHARE", help="share of prompts with a common beginning, 0 to 1")
    add("--natural-length", action="store_true", help="let answers end by themselves; lengths may then differ between sides")
    add("--timeout-s", type=float, default=_PLAIN.timeout_s, metavar="S", help="time for one answer")
    add("--quality-repetitions", type=int, default=_PLAIN.quality_repetitions, metavar="N", help="of the task suites; 0: none")
    add("--budget-s", type=float, default=_PLAIN.budget_s, metavar="S", help="begin no repetition after (default: %(default)s)")


def shape_of(given: argparse.Namespace) -> ContractShape:
    """Give the shape that is asked for.

    Raises:
        UsageError: a value that cannot be meant, or a third side.
    """
    if len(given.sides) > _MOST_SIDES:
        raise UsageError(f"{given.sides[2]}: is a third side; expected one, or baseline and candidate")
    for name, low, high in (
        ("repetitions", FEWEST_REPETITIONS, MOST_REPETITIONS),
        ("requests", 1, 100_000),
        ("concurrency", 1, 256),
        ("max_tokens", 2, 8192),
        ("shared_prefix", 0.0, 1.0),
        ("timeout_s", 0.1, 3600.0),
        ("budget_s", 1.0, 86_400.0),
        ("quality_repetitions", 0, 100),
    ):
        value = getattr(given, name)
        if not low <= value <= high:
            raise UsageError(f"--{name.replace('_', '-')} {value:g}: expected {low:g} to {high:g}{_why(name)}")
    return ContractShape(
        repetitions=given.repetitions,
        requests=given.requests,
        concurrency=given.concurrency,
        max_tokens=given.max_tokens,
        prompt=PromptKind(given.prompt),
        shared=given.shared_prefix,
        full_length=not given.natural_length,
        timeout_s=given.timeout_s,
        budget_s=given.budget_s,
        quality_repetitions=given.quality_repetitions,
    )


def slo_of(given: argparse.Namespace, fleet: Fleet | None, sides: Sequence[Side]) -> Objective | Missing:
    """Give what a good request keeps, the same on both sides.

    Raises:
        UsageError: two are named, or one that cannot be meant.
    """
    slo = parse_slo(given.slo)
    if isinstance(slo, Missing):
        return of_workload(fleet, [side.name for side in sides if side.kind is SideKind.SERVICE], given.workload)
    if given.workload is not None:
        raise UsageError("--workload: names an SLO, and so does --slo; expected one of them")
    return slo


def _why(name: str) -> str:
    return "; fewer do not bound a median at 95 %" if name == "repetitions" else ""
