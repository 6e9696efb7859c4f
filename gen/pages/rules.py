"""The acceptance gate as a page: every rule with its number, how grave it is, and how to mend what it finds."""

from __future__ import annotations

from collections.abc import Iterator

from gen.findings import DUE, Rule, Severity
from gen.markdown import anchor, code, line, paragraphs, sentence, span, text
from gen.pages.atlas import Atlas
from gen.pages.page import Page
from gen.tables import Layout, columns, table
from gen.techniques.wording import capital

HERE = "rules.md"


def pages(_atlas: Atlas) -> Iterator[Page]:
    """Write the page of rules; what they found today stands on the first page."""
    rows = [
        (
            line(anchor(rule.number.lower()), code(rule.number)),
            span(text(rule.severity.value), "bad" if rule.severity is Severity.ERROR else "note"),
            sentence(capital(rule.finds)),
            sentence(capital(rule.mend)),
            text(_passing(rule)),
        )
        for rule in Rule
    ]
    intro = text(
        "What nox -s check looks for. An error stops a pull request, and a record with one of its own is not accepted; "
        "a warning asks for somebody's attention. One finding never hides another."
    )
    ignored = text(
        "Acknowledged: in the front matter of the record concerned, by rule and subject, with a reason. Ignored: under "
        "policies.ignore in fleet.yml, by rule and place, with who says so, a reason and a last day. Both lists are checked "
        "themselves, so that neither outlives what it was for."
    )
    head = columns("Rule", "Severity", "Finds", "To mend it", "May be passed over")
    body = paragraphs(intro, ignored, table(head, rows, Layout.CARDS, "rules", facets=("Severity",)))
    yield Page(path=HERE, title="Rules of the acceptance gate", body=body, trail=(("Matrix", "index.md"),), contents=False)


def _passing(rule: Rule) -> str:
    ways = [way for way, may in (("acknowledged", rule.may_be_acknowledged), ("ignored", rule.may_be_ignored)) if may]
    return " or ".join(ways) + (", listed as due" if rule in DUE else "") if ways else "no"
