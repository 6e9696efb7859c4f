"""The facts of a machine: all of them, each with what it does to inference and how it was read."""

from __future__ import annotations

import re

from gen.pages.conditions import HOST_FACTS, host_table
from probes.evidence import Host, HostTuning
from tests.gen import specimens

_READ = re.compile(r"\b(Read from|Counted in|Those that every core has|Distinct core numbers in)\b")


def test_no_fact_is_left_out() -> None:
    assert set(HOST_FACTS) == (set(Host.model_fields) | set(HostTuning.model_fields)) - {"alias", "fingerprint", "tuning"}


def test_each_fact_says_what_it_does_and_how_it_was_read() -> None:
    described = {**Host.model_fields, **HostTuning.model_fields}
    for name in HOST_FACTS:
        said = described[name].description or ""
        found = _READ.search(said)
        assert found is not None, name
        assert found.start() > 20, f"{name}: what it does comes before how it was read"


def test_a_fact_that_could_not_be_read_shows_its_reason() -> None:
    shown = host_table(specimens.devices_run().client)
    assert len([row for row in shown.splitlines() if row.startswith("|")]) == len(HOST_FACTS) + 2
    assert "no sensor" in shown
