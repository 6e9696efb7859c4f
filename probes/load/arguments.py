"""The words of `python -m probes load`, read and held against what can be meant."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Final

from probes.errors import UsageError
from probes.evidence import Missing
from probes.fleet import INVENTORY, Fleet
from probes.load.aim import add_where
from probes.load.answer import FirstToken
from probes.load.arrivals import Arrivals
from probes.load.guard import RECENT_GAPS
from probes.load.objective import of_workload, parse_slo
from probes.load.permission import Permission, latency_guards
from probes.load.prompts import PromptKind, PromptSet
from probes.load.run import Shape
from probes.load.task import Guards

SWEEP: Final = (1, 4, 8, 16, 32)
AUTO: Final = "auto"
_FIRST_TOKENS: Final = {AUTO: FirstToken.FIRST_OUTPUT, "output": FirstToken.FIRST_OUTPUT, "event": FirstToken.FIRST_EVENT}
_MAX_CONCURRENCY: Final = 1024
_MAX_REQUESTS: Final = 1_000_000
_MAX_TOKENS: Final = 131_072
_MAX_RATE: Final = 10_000.0
_MAX_SECONDS: Final = 86_400.0
_FEWEST_REQUESTS: Final = 20
_STALL_S: Final = 10.0
_GUARDS: Final = ("stall_s", "first_byte_s", "itl_s", "latency_s")


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add every option of the load to its parser."""
    add = command.add_argument
    add_where(command)
    add("--model", metavar="ID", help="the model's id, as the server lists it (default: the one the inventory names)")
    add(
        "--concurrency",
        default="1",
        metavar="N[,N...]",
        help="requests at a time; several make a sweep; `sweep` is 1,4,8,16,32",
    )
    add("--requests", type=int, metavar="M", help="requests to measure, warm-up apart (default: 20, or 5 for each stream)")
    add("--duration-s", type=float, metavar="S", help="measure for a time instead of a number of requests")
    add("--max-tokens", type=int, default=64, metavar="K", help="tokens of one answer at most (default: 64)")
    add("--json", type=Path, metavar="FILE", help="write every metric with percentiles, samples and validity")
    add("--csv", type=Path, metavar="FILE", help="write one row per request; units stand in the header")
    add(
        "--tokenizer",
        type=Path,
        metavar="DIR",
        help="count tokens here too: a folder with openvino_tokenizer.xml or tokenizer.json, or a .gguf file",
    )
    add("--arrivals", choices=[str(one) for one in Arrivals], default=str(Arrivals.CLOSED), help="closed loop or open loop")
    add("--rate", type=float, default=0.0, metavar="R", help="requests per second of an open loop")
    add("--prompt", choices=[str(one) for one in PromptKind], default=str(PromptKind.SHORT), help="what is asked")
    add("--shared-prefix", type=float, default=0.0, metavar="SHARE", help="share of prompts with a common beginning, 0 to 1")
    add("--warmup", type=int, metavar="N", help="warm-up requests, not measured (default: one for each stream)")
    add("--warmup-s", type=float, default=0.0, metavar="S", help="measure nothing that began earlier than this")
    add("--cooldown-s", type=float, default=0.0, metavar="S", help="with --duration-s: measure nothing that ended later")
    add("--slo", default="", metavar="NAME=BOUND,...", help="what a good request keeps: ttft_s=0.5,tpot_s=0.05")
    add("--workload", metavar="NAME", help="take the SLO of this workload (default: that of the service's workload)")
    add(
        "--first-token",
        choices=list(_FIRST_TOKENS),
        default=AUTO,
        help="what stands for the first token (default: the first event of OVMS, else the first output)",
    )
    add("--ignore-eos", action="store_true", help="ask for answers of full length, where the server knows how")
    add("--retries", type=int, default=0, metavar="N", help="how often a request that is turned away (429, 503) asks again")
    add("--timeout-s", type=float, default=60.0, metavar="S", help="time for one answer")
    add("--stall-s", type=float, metavar="S", help=f"stop the run when a stream brings nothing for so long{_by_default('10')}")
    add("--first-byte-s", type=float, metavar="S", help=f"stop the run when no answer begins within{_by_default('30')}")
    add(
        "--itl-s",
        type=float,
        metavar="S",
        help=f"stop the run when {RECENT_GAPS} pieces of a stream come further apart on average{_by_default('2')}",
    )
    add(
        "--latency-s",
        type=float,
        metavar="S",
        help=f"stop the run when an answer takes longer{_by_default('half of --timeout-s')}",
    )
    add("--errors-in-a-row", type=int, default=5, metavar="N", help="stop the run after so many")
    add("--workers", type=int, metavar="N", help="processes (default: one for 32 streams, at most one per core)")
    add("--seed", type=int, default=0, help="of arrivals and start times")
    add("--key-env", metavar="NAME", help="environment variable that holds the key")
    add("--ca-file", metavar="FILE", help="certificate authority to trust for this address")
    add("--insecure", action="store_true", help="do not verify TLS; the result says so")
    add(
        "--allow-load",
        action="store_true",
        help="put this load on an address that is neither this machine nor in the inventory",
    )
    add("--fleet", type=Path, default=INVENTORY, metavar="FILE", help="the inventory, if there is one")
    add("--dry-run", action="store_true", help="say what would be sent, and to whom, and stop")
    add("--out", type=Path, metavar="DIR", help="also write the run as an evidence file into this folder")


def shapes(given: argparse.Namespace) -> list[Shape]:
    """Give the runs that are asked for, one for each concurrency.

    Raises:
        UsageError: a value that cannot be meant.
    """
    arrivals = Arrivals(given.arrivals)
    steps = _concurrency(given.concurrency)
    _check(given, arrivals, steps)
    slo = parse_slo(given.slo)
    guards = Guards(errors_in_a_row=given.errors_in_a_row, timeout_s=given.timeout_s, backlog=max(steps))
    made = []
    for concurrency in steps:
        requests = given.requests
        if requests is None and given.duration_s is None:
            requests = max(_FEWEST_REQUESTS, 5 * concurrency if arrivals is Arrivals.CLOSED else 0)
        warmup = given.warmup
        if warmup is None:
            warmup = concurrency if arrivals is Arrivals.CLOSED else min(concurrency, max(1, (requests or 100) // 10))
        made.append(
            Shape(
                model=given.model or "",
                max_tokens=given.max_tokens,
                arrivals=arrivals,
                concurrency=concurrency,
                rate=given.rate,
                requests=requests,
                duration_s=given.duration_s,
                warmup=warmup,
                warmup_s=given.warmup_s,
                cooldown_s=given.cooldown_s,
                prompts=PromptSet(kind=PromptKind(given.prompt), shared=given.shared_prefix),
                seed=given.seed,
                retries=given.retries,
                workers=given.workers,
                extra=json.dumps({"ignore_eos": True}) if given.ignore_eos else "",
                guards=guards,
                first_token=_FIRST_TOKENS[given.first_token],
                slo=slo,
            )
        )
    return made


def settled(shape: Shape, given: argparse.Namespace, fleet: Fleet | None, allowed: Permission) -> Shape:
    """Add what hangs on the inventory: the model, when the run stops at once, and what a good request keeps.

    Raises:
        UsageError: --workload names none that has an SLO, or no model is named anywhere.
    """
    limits = allowed.limits
    timeout_s = shape.guards.timeout_s if limits is None else min(shape.guards.timeout_s, limits.timeout_s)
    guards = latency_guards(limits, timeout_s, stall_s=_STALL_S)
    asked = {name: value for name in _GUARDS if (value := getattr(given, name)) is not None}
    if limits is not None:
        # The command line may only be stricter than the inventory.
        asked = {name: min(value, getattr(guards, name)) for name, value in asked.items()}
    guards = replace(guards, **asked, errors_in_a_row=shape.guards.errors_in_a_row, backlog=shape.guards.backlog)
    slo = shape.slo
    if isinstance(slo, Missing):
        slo = of_workload(fleet, [allowed.name] if allowed.name else [], given.workload)
    return replace(shape, model=shape.model or _model(given, allowed), guards=guards, slo=slo)


def _model(given: argparse.Namespace, allowed: Permission) -> str:
    """Take the model that the inventory names for the service."""
    told = allowed.service.model.id if allowed.service is not None and allowed.service.model is not None else None
    if isinstance(told, str):
        return told
    raise UsageError(f"--model: is missing, and the inventory does not name the model of {given.service}; expected its id")


def _check(given: argparse.Namespace, arrivals: Arrivals, steps: list[int]) -> None:
    _whole("--max-tokens", given.max_tokens, 1, _MAX_TOKENS)
    _whole("--retries", given.retries, 0, 100)
    _whole("--errors-in-a-row", given.errors_in_a_row, 1, _MAX_REQUESTS)
    if given.requests is not None:
        _whole("--requests", given.requests, 1, _MAX_REQUESTS)
    if given.warmup is not None:
        _whole("--warmup", given.warmup, 0, _MAX_REQUESTS)
    if given.workers is not None:
        _whole("--workers", given.workers, 1, 64)
    for name in ("timeout_s", *_GUARDS):
        if (seconds := getattr(given, name)) is not None:
            _between(f"--{name.replace('_', '-')}", seconds, 0.001, _MAX_SECONDS)
    for name in ("warmup_s", "cooldown_s"):
        _between(f"--{name.replace('_', '-')}", getattr(given, name), 0.0, _MAX_SECONDS)
    _between("--shared-prefix", given.shared_prefix, 0.0, 1.0)
    _check_names(given)
    _check_window(given)
    if arrivals is Arrivals.CLOSED:
        if given.rate:
            raise UsageError("--rate: a closed loop has none; expected --arrivals constant or poisson beside it")
    else:
        _between("--rate", given.rate, 0.001, _MAX_RATE)
        if len(steps) > 1:
            raise UsageError("--concurrency: a sweep is a closed loop; expected one number, the most requests in flight")


def _check_names(given: argparse.Namespace) -> None:
    if given.model is None and given.service is None:
        raise UsageError("--model: is missing; expected the id of a model that the server lists")
    if given.model is not None and not given.model.strip():
        raise UsageError("--model: is empty; expected the id of a model that the server lists")
    if given.slo and given.workload is not None:
        raise UsageError("--workload: names an SLO, and so does --slo; expected one of them")


def _check_window(given: argparse.Namespace) -> None:
    if given.duration_s is not None:
        _between("--duration-s", given.duration_s, 0.1, _MAX_SECONDS)
        if given.warmup_s + given.cooldown_s >= given.duration_s:
            raise UsageError("--duration-s: warm-up and cool-down leave nothing of it; expected more")
    elif given.cooldown_s:
        raise UsageError(
            "--cooldown-s: needs --duration-s; a number of requests keeps the load up until the last one has ended"
        )
    elif given.warmup_s:
        raise UsageError("--warmup-s: needs --duration-s; before a number of requests, --warmup sends some that do not count")


def _concurrency(text: str) -> list[int]:
    if text == "sweep":
        return list(SWEEP)
    try:
        steps = [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--concurrency {text}: is not a whole number; expected 4, or 1,4,8,16,32 for a sweep") from None
    for step in steps:
        _whole("--concurrency", step, 1, _MAX_CONCURRENCY)
    return steps


def _whole(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise UsageError(f"{name} {value}: expected {low} to {high}")


def _between(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise UsageError(f"{name} {value:g}: expected {low:g} to {high:g}")


def _by_default(value: str) -> str:
    return f" (default: {value}, or what the inventory says)"
