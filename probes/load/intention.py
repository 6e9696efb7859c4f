"""What a load is about to send, and to whom, said before it is sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from probes.evidence import Missing
from probes.load.aim import Aim
from probes.load.run import CHAT, PREFIXES, Shape


def intention(aim: Aim, shapes: Sequence[Shape], limited: str) -> Iterator[str]:
    """Name the final address, the load, what stops it and what it is held against; `limited` says what was cut down."""
    apis = [aim.gate.address.api] if aim.gate.address.api else PREFIXES
    # An address behind a reference stays there.
    root, at = ("", f" at {aim.shown}") if aim.shown.startswith("$") else (aim.gate.address.root, "")
    yield f"asks POST {' or '.join(f'{root}{api}{CHAT}' for api in apis)}{at}, first with one small request"
    for shape in shapes:
        amount = f"for {shape.duration_s:g} s" if shape.duration_s is not None else f"{shape.requests} requests"
        yield f"{shape.words}; {amount} after {shape.warmup} to warm up, at most {shape.max_tokens} tokens each"
    if limited:
        yield limited
    guards, slo = shapes[0].guards, shapes[0].slo
    yield (
        f"stops at once on {guards.errors_in_a_row} errors in a row, no answer begun within {guards.first_byte_s:g} s, "
        f"tokens {guards.itl_s:g} s apart, a stream silent for {guards.stall_s:g} s, or an answer of {guards.latency_s:g} s"
    )
    yield f"goodput: {slo.missing}: {slo.detail}" if isinstance(slo, Missing) else f"goodput {slo.words}"
