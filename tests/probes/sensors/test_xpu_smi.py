"""xpu-smi as a real child process that prints what xpu-smi 1.2 prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.evidence import Missing
from probes.sensors.xpu_smi import XpuSmi, start_xpu_smi
from tests.probes.sensors.trees import program

HEAD = "Timestamp, DeviceId, GPU Power (W), GPU Memory Used (MiB)"


def test_last_line_is_read_by_the_titles_of_its_columns(tmp_path: Path) -> None:
    lines = (HEAD, "06:14:46.000,    0, 14.61, 25.50", "06:14:47.000,    0, 90.25, 8192.00")
    found = start_xpu_smi("0000:03:00.0", program(tmp_path, *lines))
    assert isinstance(found, XpuSmi)
    while found.power.read() != 90.25:
        pass
    assert found.memory.read() == 8192 * 2**20
    assert (tmp_path / "asked").read_text() == "dump -d 0000:03:00.0 -m 1,18 -i 1\n"
    found.close()


def test_value_that_is_not_there_is_a_reading_that_failed(tmp_path: Path) -> None:
    found = start_xpu_smi("0", program(tmp_path, HEAD, "06:14:46.000,    0, N/A, 25.50"))
    assert isinstance(found, XpuSmi)
    with pytest.raises(ValueError, match="could not convert"):
        found.power.read()
    found.close()


def test_program_that_gives_up_tells_its_words(tmp_path: Path) -> None:
    found = start_xpu_smi("0", program(tmp_path, "Error: Level Zero Initialization Error", then="exit 1"))
    assert isinstance(found, XpuSmi)
    found._process.wait()
    found._thread.join()
    with pytest.raises(ValueError, match="xpu-smi ended: Error: Level Zero Initialization Error"):
        found.power.read()
    found.close()


def test_program_that_is_not_there_is_no_sensor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for found in (start_xpu_smi("0"), start_xpu_smi("0", tmp_path / "nowhere")):
        assert isinstance(found, Missing)
        assert "xpu-smi" in found.detail
