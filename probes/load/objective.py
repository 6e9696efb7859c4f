"""What a good request keeps, and who says so: the command line, or a workload of the inventory."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from probes.errors import UsageError
from probes.evidence import Missing, MissingReason
from probes.fleet import Fleet

# Speed is the one bound from below.
_AT_LEAST: Final = "decode_tok_s"
_OF_LATER_TOKENS: Final = frozenset({"tpot_s", _AT_LEAST})
METRICS: Final = ("ttft_s", "tpot_s", "latency_s", _AT_LEAST)


@dataclass(frozen=True, kw_only=True)
class Objective:
    """Bounds that a request has to keep to be good: seconds at most, tokens per second at least; `origin` says whose."""

    bounds: Mapping[str, float]
    origin: str

    def met(self, values: Mapping[str, float | None]) -> bool:
        """Tell whether one request kept every bound; a value that is not known keeps none.

        An answer of one token has no later ones that could have been slow.
        """
        alone = values.get("completion_tokens") == 1
        for name, bound in self.bounds.items():
            value = values.get(name)
            if value is None and alone and name in _OF_LATER_TOKENS:
                continue
            if value is None or (value < bound if name == _AT_LEAST else value > bound):
                return False
        return True

    @property
    def words(self) -> str:
        """Say what is held against what."""
        bounds = ", ".join(f"{name} {'>=' if name == _AT_LEAST else '<='} {bound:g}" for name, bound in self.bounds.items())
        return f"against {self.origin}: {bounds}"

    def document(self) -> dict[str, JsonValue]:
        """Give bounds and origin as a file holds them."""
        return {"bounds": dict(self.bounds), "origin": self.origin}


UNSET: Final = Missing(
    missing=MissingReason.NOT_CONFIGURED, detail="no SLO was given; name one with --slo, or give a workload of fleet.yml one"
)


def parse_slo(text: str) -> Objective | Missing:
    """Read NAME=BOUND,... as --slo takes it; nothing is no objective.

    Raises:
        UsageError: a name that is none, or a bound that cannot be meant.
    """
    bounds: dict[str, float] = {}
    for part in filter(None, (one.strip() for one in text.split(","))):
        name, _, value = part.partition("=")
        try:
            bound = float(value)
        except ValueError:
            bound = math.nan
        if name not in METRICS or not bound > 0 or math.isinf(bound):
            known = ", ".join(sorted(METRICS))
            raise UsageError(f"--slo {part}: is no bound; expected NAME=NUMBER with a name of {known}")
        bounds[name] = bound
    return Objective(bounds=bounds, origin="the SLO of --slo") if bounds else UNSET


def of_workload(fleet: Fleet | None, services: Collection[str], named: str | None) -> Objective | Missing:
    """Take the SLO of the workload that is named, else the one that the workloads of these services agree on.

    Raises:
        UsageError: the named workload does not exist, or has no SLO.
    """
    workloads = fleet.workloads if fleet is not None else {}
    having = {name: one.slo for name, one in workloads.items() if one.slo is not None}
    if named is not None and named not in having:
        what = "has no slo in fleet.yml" if named in workloads else "is no workload of fleet.yml"
        raise UsageError(f"--workload {named}: {what}; expected {', '.join(having) or 'one that has, and none does'}")
    chosen = [named] if named is not None else [name for name in having if set(workloads[name].services) & set(services)]
    if fleet is None or not chosen:
        return UNSET
    slo = having[chosen[0]]
    if any(having[name].bounds != slo.bounds for name in chosen):
        detail = f"the workloads {' and '.join(chosen)} have different SLOs; name one with --workload"
        return Missing(missing=MissingReason.NOT_CONFIGURED, detail=detail)
    who = f"workload {chosen[0]}" if len(chosen) == 1 else f"the workloads {', '.join(chosen)}"
    return Objective(bounds=slo.bounds, origin=f"the SLO of {who} (fleet.yml, as of {slo.as_of or fleet.as_of})")
