"""What a reader of a load run has to know beside its numbers, and no number says."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from probes.load.observation import Observation
from probes.load.outcome import Outcome
from probes.load.run import Finding

_CACHED_SHARE_SHOWN: Final = 0.01
_FOREIGN_SHARE_SHOWN: Final = 0.5
UNKNOWN: Final = "not told"


def finish_reasons(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """Count why the answers ended by the servers' words; a server that does not say why is counted too."""
    return dict(Counter(o.answer.finish_reason or UNKNOWN for o in outcomes if o.ok).most_common())


def remarks(finding: Finding, observed: Observation | None) -> Iterator[str]:
    """Say what makes the numbers mean less, or something else, than they seem to."""
    yield from _lengths(finding)
    yield from _cached(finding, observed)
    yield from _others(finding, observed)


def _lengths(finding: Finding) -> Iterator[str]:
    """Tell whether full answers were asked for and not given: runs of other lengths cannot be compared."""
    good = [o for o in finding.measured if o.ok]
    if not good or not (finding.shape.extra and json.loads(finding.shape.extra).get("ignore_eos")):
        return
    short = [o for o in good if o.tokens is not None and o.tokens < finding.shape.max_tokens]
    if short:
        counts = sorted(o.tokens or 0 for o in good if o.tokens is not None)
        yield (
            f"--ignore-eos was not heeded: {len(short)} of {len(good)} answers are shorter than {finding.shape.max_tokens} "
            f"tokens ({counts[0]} to {counts[-1]})"
        )


def _cached(finding: Finding, observed: Observation | None) -> Iterator[str]:
    """Tell that a prefix cache answered although every prompt is new; what they share is the beginning of a chat template."""
    if finding.shape.prompts.shared:
        return
    usages = [o.answer.usage for o in finding.measured if o.ok and o.answer.usage is not None]
    asked = sum(u.prompt_tokens or 0 for u in usages)
    cached = sum(u.cached_tokens or 0 for u in usages if u.prompt_tokens)
    share = cached / asked if asked else 0.0
    own = _value(observed, "server_prefix_cache_hit_ratio")
    if max(share, own or 0.0) >= _CACHED_SHARE_SHOWN:
        yield (
            f"a prefix cache gave {max(share, own or 0.0):.0%} of the prompt tokens although every prompt is new: "
            "they share what the server puts before them"
        )


def _others(finding: Finding, observed: Observation | None) -> Iterator[str]:
    """Tell that the server generated far more than came here: it answered others too."""
    generated = _value(observed, "server_generated_tokens")
    if generated is None or any(o.ok and o.usage_tokens is None for o in finding.outcomes):
        return
    mine = sum(o.usage_tokens or 0 for o in finding.outcomes)
    if generated * (1 - _FOREIGN_SHARE_SHOWN) > mine:
        yield f"the server generated {generated:.0f} tokens meanwhile and {mine} came here: others use it too"


def _value(observed: Observation | None, name: str) -> float | None:
    series = () if observed is None else observed.series
    return next((one.samples[0] for one in series if one.name == name and one.samples), None)
