"""What survives a kill, and what does not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from probes.child import Outcome
from probes.devices.capabilities import default_trial, precise_trial
from probes.devices.journal import LIFETIME, Journal, digest
from probes.devices.trial import Observation, Tried
from probes.errors import HostError

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
TRIAL, OTHER = default_trial("CPU"), precise_trial("CPU")
SEEN = Observation(dump=None, tokens=((1, 2),), log_likelihoods=(-1.0625,), steps_to_first=(1,), bytes_per_token=13680)
OK = Tried(outcome=Outcome.OK, observation=SEEN, loaded=True, words="", seconds=1.5, peak_rss_bytes=2)
HUNG = Tried(
    outcome=Outcome.TIMED_OUT, observation=None, loaded=True, words="no end after 180 s", seconds=180.0, peak_rss_bytes=2
)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal.of(tmp_path / "cache", {"device": "CPU"})


def test_finished_trials_come_back_as_they_ended(journal: Journal) -> None:
    assert journal.read(NOW) == {}
    journal.keep(TRIAL, OK, NOW)
    journal.keep(OTHER, HUNG, NOW)
    assert journal.read(NOW) == {digest(TRIAL): OK, digest(OTHER): HUNG}


def test_a_line_that_a_kill_cut_short_loses_itself_alone(journal: Journal) -> None:
    journal.keep(TRIAL, OK, NOW)
    with journal.path.open("ab") as file:
        file.write(b'{"trial": "\xff')
    assert list(journal.read(NOW)) == [digest(TRIAL)]


@pytest.mark.parametrize("age", [LIFETIME + timedelta(seconds=1), timedelta(seconds=-1)])
def test_what_is_old_or_from_the_future_is_forgotten(journal: Journal, age: timedelta) -> None:
    journal.keep(TRIAL, OK, NOW - age)
    assert journal.read(NOW) == {}


def test_the_end_of_a_probe_ends_its_journal(journal: Journal) -> None:
    journal.keep(TRIAL, OK, NOW)
    journal.end()
    journal.end()
    assert journal.read(NOW) == {}


def test_another_device_runtime_or_model_has_another_journal(tmp_path: Path) -> None:
    assert Journal.of(tmp_path, {"device": "CPU"}) == Journal.of(tmp_path, {"device": "CPU"})
    assert Journal.of(tmp_path, {"device": "CPU"}) != Journal.of(tmp_path, {"device": "GPU"})
    assert digest(TRIAL) != digest(OTHER)


def test_a_cache_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(HostError, match="cache: cannot be written"):
        Journal.of(tmp_path / "cache", {}).keep(TRIAL, OK, NOW)
