"""The one sentence that says why a row of the matrix stands as it does."""

from __future__ import annotations

import re

from gen.assessment import Assessment
from gen.techniques.wording import capital
from gen.words import Decision

# Where everything stays as it is, the state says more than "keep" does.
_STAYS = frozenset({Decision.KEEP, Decision.NO_CHANGE, Decision.NOT_APPLICABLE})
_NEXT_SENTENCE = re.compile(r"(?<=[.!?…])\s+(?=[^a-z\s])")


def reason(assessment: Assessment) -> str:
    """Give the first sentence of what is on where that stays, else of what is to be done, without the decision's own words."""
    said = assessment.state_text if assessment.decision in _STAYS else assessment.decision_text
    first = _NEXT_SENTENCE.split(said.strip(), maxsplit=1)[0]
    lead = f"{assessment.decision.value}: "
    return capital(first[len(lead) :]) if first.casefold().startswith(lead) else first
