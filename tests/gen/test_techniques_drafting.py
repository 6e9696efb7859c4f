"""What a machine shows about drafts reaches its assessment, and a head with random weights is never a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from gen.assess import assess
from gen.assessment import Assessment
from gen.changes import compare
from gen.site import pages
from gen.words import Decision
from probes.archive import seal
from probes.evidence import (
    Arm,
    Capability,
    CapabilityState,
    Device,
    Direction,
    Metric,
    Per,
    Run,
    RunKind,
    Runtime,
    Scalar,
    Technique,
    Validity,
)
from tests.gen.ledger import NOVEMBER, ledger
from tests.gen.reading import read
from tests.gen.specimens import FINGERPRINT, START, run

LOCAL = f"local-{FINGERPRINT}"
GENAI = Runtime(name="openvino-genai", version="2026.4.1.0")
CPU = Device(name="CPU", full_name="Example CPU 3000")
DRAFTS = Technique.SPECULATIVE_DECODING
PRICES = (2.0, 2.1, 1.9, 2.05, 1.95, 2.0)


def assessed(*runs: Run) -> Assessment:
    return next(row for row in assess(ledger(local_runs=runs), LOCAL, NOVEMBER) if row.technique is DRAFTS)


def measured(prices: Sequence[float] = PRICES, *, minute: int = 10, valid: bool = True, version: str = "2026.4.1.0") -> Run:
    settings: dict[str, Scalar] = {"num_assistant_tokens": 3}
    plain, head = Arm(name="plain", role="baseline"), Arm(name="EAGLE-3 random head, k=3", role="candidate", settings=settings)

    def metric(name: str, arm: str, samples: Sequence[float]) -> Metric:
        return Metric(name=name, unit="x", direction=Direction.HIGHER, per=Per.REPETITION, arm=arm, samples=tuple(samples))

    found = run(
        RunKind.MICRO,
        "speculative-break-even",
        minute=minute,
        runtime=Runtime(name="openvino-genai", version=version),
        device=CPU,
        arms=(plain, head),
        metrics=(
            metric("decode_tok_s", "plain", [40.0] * 6),
            metric("decode_tok_s", head.name, [20.0] * 6),
            metric("break_even_tokens_per_step", head.name, prices),
        ),
    )
    reasons = () if valid else ("too few samples: 2 repetitions of each arm; expected 6",)
    return found.model_copy(update={"validity": Validity(valid=valid, reasons=reasons)})


def shown(state: CapabilityState = CapabilityState.EFFECTIVE) -> Run:
    def capability(requested: str, came_to: CapabilityState) -> Capability:
        return Capability(name="EAGLE-3", technique=DRAFTS, requested=requested, state=came_to, words="its words")

    asked = {
        "num_assistant_tokens=3; one request at a time": state,
        "num_assistant_tokens=3; 6 requests at once": CapabilityState.EFFECTIVE,
        "XATTENTION": CapabilityState.REFUSED,
    }
    capabilities = tuple(capability(requested, came_to) for requested, came_to in asked.items())
    return run(RunKind.DEVICES, "cpu", minute=0, runtime=GENAI, device=CPU, capabilities=capabilities)


def test_half_the_speed_of_a_random_head_decides_nothing() -> None:
    before, after = assessed(shown()), assessed(shown(), measured())
    assert after.decision is before.decision
    assert after.decision is not Decision.DO_NOT_DEPLOY
    assert [(cell.decision, cell.summary) for cell in after.cells] == [(cell.decision, cell.summary) for cell in before.cells]


def test_what_a_head_has_to_reach_is_told_with_its_interval() -> None:
    found = assessed(shown(), measured())
    assert "EAGLE-3 is accepted and lossless under an exact cache on CPU." in found.why
    assert (
        "CPU, one request: an EAGLE-3 head must reach 2.00 tokens per step "
        "(95 % interval 1.90 to 2.10, n = 6 repetitions) at k=3 to pay; "
        "one that is always right would reach 4."
    ) in found.why
    assert measured().id in found.evidence
    assert any("reaches the tokens per step" in change for change in found.would_change)
    facts = {fact.id: fact.value for fact in found.facts}
    assert facts["CPU/speculative-break-even"] == "measured"
    assert facts["cpu/EAGLE-3/XATTENTION"] == "refused"


def test_the_page_of_a_run_prices_drafts_and_passes_no_verdict_on_a_random_head() -> None:
    """Some metrics are of drafts alone: the plain arm has none to be held against."""
    priced, plain = measured(), measured()
    arms = tuple(arm.model_copy(update={"settings": {**arm.settings, "head": "random weights"}}) for arm in priced.arms[1:])
    brought = Metric(
        name="tokens_per_step",
        unit="tokens/step",
        direction=Direction.HIGHER,
        per=Per.REPETITION,
        arm=arms[0].name,
        samples=(1.0,) * 6,
    )
    random = seal(priced.model_copy(update={"arms": (priced.arms[0], *arms), "metrics": (*priced.metrics, brought)}))
    trained = seal(plain.model_copy(update={"id": f"{plain.id}-2"}))
    site = pages(ledger(local_runs=(random, trained)), NOVEMBER)
    shown, compared = (read(site[f"runs/{one.id.lower()}.md"].split("---\n", 2)[2]) for one in (random, trained))
    row = ["EAGLE-3 random head, k=3", "median 2 x (95 % interval 1.9 to 2.1; n = 6 repetitions)"]
    rows = [[" ".join(cell.split()) for cell in row] for row in shown.rows]
    assert any(all(part in cell for part, cell in zip(row, cells, strict=False)) for cells in rows)
    assert any("1 tokens/step in each of 6 repetitions" in cells[-1] for cells in rows)
    assert "say nothing about one that was trained" in " ".join(shown.text.split())
    assert "by the rule of comparison" not in shown.text
    assert "by the rule of comparison" in compared.text
    assert not any("break_even" in cells[0] and "not measured" in " ".join(cells) for cells in compared.rows)


def test_how_many_requests_shared_the_batch_is_told() -> None:
    several = measured()
    arms = tuple(arm.model_copy(update={"settings": {**arm.settings, "concurrency": 4}}) for arm in several.arms)
    found = assessed(several.model_copy(update={"subject": "speculative-break-even-batched", "arms": arms}))
    assert any(why.startswith("CPU, 4 requests at once: an EAGLE-3 head must reach 2.00") for why in found.why)


@pytest.mark.parametrize(
    ("times", "word"),
    [
        (1, "CPU: by (1 - a^(k+1)) / (1 - a) a draft pays from"),
        (2, "CPU: it is open whether a head that is always right pays at k=3."),
        (3, "CPU: not even a head that is always right pays at k=3."),
    ],
)
def test_what_a_right_guess_is_worth_is_told_as_far_as_the_interval_allows(times: int, word: str) -> None:
    """An interval of 1.9 to 2.1 tokens per step, then 3.8 to 4.2 and 5.7 to 6.3, where a perfect head brings 4."""
    assert any(why.startswith(word) for why in assessed(shown(), measured([times * price for price in PRICES])).why)


def test_another_price_moves_no_key() -> None:
    later = measured([2 * price for price in PRICES], minute=50)
    assert assessed(shown(), measured()).key() == assessed(shown(), measured(), later).key()
    assert any("must reach 4.00" in why for why in assessed(shown(), measured(), later).why)


def test_a_draft_record_holds_no_verdict_on_a_random_head() -> None:
    checkout = ledger(local_runs=(shown(), measured()))
    (draft,) = compare(checkout, [assessed(shown(), measured())], NOVEMBER)
    assert measured().id in draft.text
    assert "worse" not in draft.text
    assert "random head" not in draft.text


def test_an_invalid_price_or_one_of_another_release_takes_none_away() -> None:
    for later in (measured([9.0] * 6, minute=50, valid=False), measured([9.0] * 6, minute=50, version="2026.3.0.0")):
        last = measured(minute=55).model_copy(update={"subject": "other"})
        why = assessed(shown(), measured(), later, last).why
        assert any("must reach 2.00" in line for line in why)
        assert not any("must reach 9.00" in line for line in why)


def test_what_was_not_shown_is_not_claimed() -> None:
    assert "EAGLE-3 is refused on CPU." in assessed(shown(CapabilityState.REFUSED)).why
    assert "EAGLE-3 was not shown to work on CPU." in assessed(shown(CapabilityState.FAILED)).why
    assert START + timedelta(minutes=0) == shown().started_at
