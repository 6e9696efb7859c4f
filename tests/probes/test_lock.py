"""Whoever measures is alone, and nobody waits for the dead."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from probes.errors import HostError
from probes.lock import NAME, alone

HOLD = """
import sys
from pathlib import Path
from probes.lock import alone
with alone(Path(sys.argv[1]), "process 7 (a test)", print):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_run_is_told_who_holds_the_lock_and_a_dead_one_holds_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    with subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", HOLD, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(HostError, match=rf"{NAME}: is held by process 7 \(a test\); expected no other run on this machine"),
            alone(tmp_path, "process 8", said.append),
        ):
            pass
        assert (tmp_path / NAME).read_text(encoding="utf-8") == "process 7 (a test)\n"
        holder.kill()
        holder.wait()
    with alone(tmp_path, "process 9", said.append):
        assert (tmp_path / NAME).read_text(encoding="utf-8") == "process 9\n"
    with alone(tmp_path, "process 10", said.append):
        pass
    assert said == []


def test_a_folder_that_takes_no_lock_is_told_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("where the folder should be", encoding="utf-8")
    said: list[str] = []
    done = False
    with alone(tmp_path / "file", "process 8", said.append):
        done = True
    assert (done, len(said)) == (True, 1)
    assert said[0].endswith("takes no lock (File exists); a second run at the same time would go unnoticed")
