"""One load run from its shape to its findings: make the tasks, let the workers work, read what they left."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from probes.endpoints.address import Address
from probes.errors import ProbeError
from probes.evidence import Missing
from probes.load import outcome as outcomes
from probes.load.answer import FirstToken
from probes.load.arrivals import Arrivals, ramp
from probes.load.counting import count_texts, words_of, write_texts
from probes.load.crew import Course, Halt, exchanges, work
from probes.load.objective import UNSET, Objective
from probes.load.outcome import Outcome
from probes.load.prompts import PromptSet, templates
from probes.load.series import Series, TokenSource, series, token_source
from probes.load.soundness import Offer, Soundness, judge
from probes.load.statistics import percentiles
from probes.load.task import Door, Guards, Task
from probes.load.window import Phase, Progress, Rule, Window, choose

CHAT: Final = "/chat/completions"
# What the API is asked under where the address does not say.
PREFIXES: Final = ("/v1", "/v3")
_STREAMS_PER_WORKER: Final = 32
_RAMP_SPACING_S: Final = 0.001
_ENDLESS: Final = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class Gate:
    """The way to a service: address, key and authority, all checked. `api` is '' until a request has found it."""

    address: Address
    key: str | None = field(default=None, repr=False)
    ca_file: str = ""
    insecure: bool = False


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The load of one run.

    `requests` are measured ones: the load is kept up until the last of them has ended. `at_most` bounds all that are
    sent. `usage` asks for token counts in the stream, which some servers refuse. `extra` is a JSON object of further fields.
    """

    model: str
    max_tokens: int
    arrivals: Arrivals = Arrivals.CLOSED
    concurrency: int = 1
    rate: float = 0.0
    requests: int | None = None
    duration_s: float | None = None
    warmup: int = 0
    warmup_s: float = 0.0
    cooldown_s: float = 0.0
    at_most: int | None = None
    prompts: PromptSet = field(default_factory=PromptSet)
    seed: int = 0
    retries: int = 0
    workers: int | None = None
    usage: bool = True
    extra: str = ""
    guards: Guards = field(default_factory=Guards)
    first_token: FirstToken = FirstToken.FIRST_OUTPUT
    slo: Objective | Missing = UNSET

    @property
    def processes(self) -> int:
        """How many workers to start: one per 32 streams, so that none fills a core, and never more than cores."""
        if self.workers is not None:
            return min(self.workers, self.concurrency)
        return max(1, min(-(-self.concurrency // _STREAMS_PER_WORKER), os.cpu_count() or 1))

    @property
    def words(self) -> str:
        """Name the arrival schedule as evidence does."""
        if self.arrivals is Arrivals.CLOSED:
            return f"closed loop: {self.concurrency} at a time"
        kind = "Poisson" if self.arrivals is Arrivals.POISSON else "constant"
        return f"open loop: {kind} arrivals, {self.rate:g} requests/s, at most {self.concurrency} in flight"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What one run brought."""

    shape: Shape
    started_at: datetime
    course: Course
    outcomes: tuple[Outcome, ...]
    window: Window
    series: tuple[Series, ...]
    soundness: Soundness

    @property
    def measured(self) -> tuple[Outcome, ...]:
        """The requests that count."""
        return tuple(o for o, phase in zip(self.outcomes, self.window.phases, strict=True) if phase is Phase.MEASURED)

    @property
    def token_source(self) -> TokenSource | None:
        """Who counted the tokens."""
        return token_source(self.outcomes)

    @property
    def tok_s(self) -> float | None:
        """Tokens per second of the measured window; None where only chunks were counted."""
        if self.token_source is TokenSource.CHUNKS:
            return None
        return next((one.samples[0] for one in self.series if one.name == "aggregate_tok_s" and one.samples), None)

    @property
    def halts(self) -> tuple[Halt, ...]:
        """Why it was stopped, if it was."""
        return self.course.halts

    @property
    def interrupted(self) -> bool:
        """Tell whether somebody stopped it by hand."""
        return any(halt.reason == "interrupted" for halt in self.course.halts)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is invalid; empty when it is valid."""
        reasons = [halt.reason for halt in self.course.halts]
        if not self.measured:
            reasons.append("nothing-measured")
        elif not any(o.ok for o in self.measured):
            reasons.append("nothing-succeeded")
        return tuple(dict.fromkeys((*reasons, *self.soundness.reasons)))


def measure(
    gate: Gate,
    shape: Shape,
    door: Door,
    started_at: datetime,
    hired: Sequence[subprocess.Popen[bytes]] = (),
    *,
    tokenizer: Path | None = None,
) -> Finding:
    """Put the load on and read what came back; what a server does is never an exception. `hired` workers wait already.

    With a `tokenizer`, a file or folder that `check_tokenizer` knows, the tokens of the answers are counted here too.

    Raises:
        HostError: workers cannot be started, or the folder for temporary files is full.
    """
    with tempfile.TemporaryDirectory(prefix="load-") as folder:
        tasks = list(_tasks(gate, shape, door, Path(folder)))
        rule = Rule(warmup=shape.warmup, requests=shape.requests)
        drain_s = shape.guards.timeout_s + 1
        course = work(tasks, progress=Progress(rule), deadline_s=shape.duration_s, drain_s=drain_s, hired=hired)
        read, uncounted = _read(tasks, shape, tokenizer, Path(folder) / "texts")
    warm_until_ns = course.began_ns + round(shape.warmup_s * 1e9) if shape.warmup_s else None
    cool_from_ns = course.stopped_ns - round(shape.cooldown_s * 1e9) if shape.duration_s is not None else None
    spans = [(one.start_ns, one.end_ns) for one in read]
    window = choose(
        spans, Rule(warmup=shape.warmup, requests=shape.requests, warm_until_ns=warm_until_ns, cool_from_ns=cool_from_ns)
    )
    found = series(read, window, shape.first_token, shape.slo, uncounted=uncounted)
    ttft, itl = (_middle(found, name) for name in ("ttft_s", "itl_s"))
    offer = Offer(arrivals=shape.arrivals, concurrency=shape.concurrency, rate=shape.rate)
    return Finding(
        shape=shape,
        started_at=started_at,
        course=course,
        outcomes=read,
        window=window,
        series=found,
        soundness=judge(read, window, course.stats, offer=offer, ttft_p50_s=ttft, itl_p50_s=itl),
    )


def _read(
    tasks: Sequence[Task], shape: Shape, tokenizer: Path | None, file: Path
) -> tuple[tuple[Outcome, ...], Missing | None]:
    """Read what came back; also count its tokens, and say why that could not be done."""
    from_due = shape.arrivals is not Arrivals.CLOSED
    if tokenizer is None:
        read = (outcomes.read(one, from_due=from_due, max_tokens=shape.max_tokens) for one in exchanges(tasks))
        return tuple(read), None
    kept: list[Outcome] = []

    def texts() -> Iterator[str]:
        for one in exchanges(tasks):
            outcome = outcomes.read(one, from_due=from_due, max_tokens=shape.max_tokens, texts=True)
            yield words_of(outcome.answer)
            kept.append(replace(outcome, answer=outcomes.without_texts(outcome.answer)))

    write_texts(file, texts())
    counts = count_texts(tokenizer, file) if kept else []
    if isinstance(counts, Missing):
        return tuple(kept), counts
    # One source for a whole run: counts of two kinds are never compared or added.
    by_tokenizer = any(one.ok and one.usage_tokens is None for one in kept)
    both = zip(kept, counts, strict=True)
    return tuple(replace(one, counted=count, by_tokenizer=by_tokenizer) for one, count in both), None


def ask_once(gate: Gate, shape: Shape, door: Door, started_at: datetime) -> Outcome:
    """Send one request of a shape before any load.

    Raises:
        KeyboardInterrupt: stopped with Ctrl-C, whatever came of the request.
        ProbeError: no answer of any kind came.
    """
    alone = replace(
        shape,
        arrivals=Arrivals.CLOSED,
        rate=0.0,
        concurrency=1,
        requests=1,
        duration_s=None,
        warmup=0,
        warmup_s=0.0,
        cooldown_s=0.0,
        at_most=1,
        workers=1,
    )
    finding = measure(gate, alone, door, started_at)
    if finding.interrupted:
        raise KeyboardInterrupt
    if not finding.outcomes:
        raise ProbeError("; ".join(halt.words for halt in finding.halts) or "no answer came")
    return finding.outcomes[0]


def _middle(found: Sequence[Series], name: str) -> float | None:
    return next(percentiles(one.samples)["p50"] for one in found if one.name == name)


def doors(gate: Gate) -> list[Door]:
    """Resolve the host of an address, in the order in which the system would try.

    Raises:
        ProbeError: the name is not known.
    """
    parts = urlsplit(gate.address.root)
    host, port = parts.hostname or "", parts.port or (443 if gate.address.secure else 80)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as exc:
        raise ProbeError(f"the name {host} is not resolved: {exc.strerror or exc}") from exc
    chosen = {}
    for family, _, _, _, address in found:
        if family in {socket.AF_INET, socket.AF_INET6}:
            where: tuple[str | int, ...] = (str(address[0]), *(int(part) for part in address[1:]))
            chosen[where] = Door(
                family=family,
                address=where,
                name=host,
                secure=gate.address.secure,
                ca_file=gate.ca_file,
                insecure=gate.insecure,
            )
    return list(chosen.values())


def _tasks(gate: Gate, shape: Shape, door: Door, folder: Path) -> Iterator[Task]:
    run_mark = secrets.token_hex(4)
    bodies = _bodies(gate, shape, run_mark)
    workers = shape.processes
    ramps = ramp(shape.concurrency, spacing_s=_RAMP_SPACING_S, seed=shape.seed)
    for worker in range(workers):
        mine = ramps[worker::workers]
        yield Task(
            worker=worker,
            workers=workers,
            door=door,
            bodies=bodies,
            mark=run_mark,
            shared=shape.prompts.shared,
            arrivals=shape.arrivals,
            ramp_s=tuple(mine),
            rate=shape.rate,
            seed=shape.seed,
            at_most=_share(_ENDLESS if shape.at_most is None else shape.at_most, worker, workers),
            in_flight=len(mine),
            retries=shape.retries,
            guards=shape.guards,
            spool=str(folder / f"{worker}.spool"),
            stats=str(folder / f"{worker}.json"),
        )


def _share(total: int, worker: int, workers: int) -> int:
    return total // workers + (worker < total % workers)


def _bodies(gate: Gate, shape: Shape, run_mark: str) -> tuple[tuple[str, str], ...]:
    """Write whole requests. The key travels in its header and nowhere else."""
    parts = urlsplit(gate.address.root)
    made = templates(
        shape.prompts,
        run_mark=run_mark,
        model=shape.model,
        max_tokens=shape.max_tokens,
        usage=shape.usage,
        extra=shape.extra,
    )
    requests = []
    for template in made:
        length = len(template.before) + len(run_mark) + 8 + len(template.after)
        lines = [
            f"POST {parts.path}{gate.address.api}{CHAT} HTTP/1.1",
            f"Host: {parts.netloc}",
            "User-Agent: inference-adr",
            "Accept: text/event-stream",
            "Accept-Encoding: identity",
            "Content-Type: application/json",
            f"Content-Length: {length}",
            *([f"Authorization: Bearer {gate.key}"] if gate.key else []),
        ]
        requests.append(("\r\n".join(lines) + "\r\n\r\n" + template.before.decode("ascii"), template.after.decode("ascii")))
    return tuple(requests)
