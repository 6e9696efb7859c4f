"""Resets by the drivers' own words; many lines of one reset are one, and a log that nobody may read is no sensor."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from probes.evidence import Missing, MissingReason
from probes.sensors.kernel import KernelLog, Line, incidents, record

XE_RESET = (
    "xe 0000:3d:00.0: [drm] Tile0: GT0: Engine reset: engine_class=ccs, logical_mask: 0x1, guc_id=9, state=0x29",
    "xe 0000:3d:00.0: [drm] Tile0: GT0: Timedout job: seqno=1523, lrc_seqno=1523, guc_id=9, flags=0x20 in python [2693]",
)


@pytest.mark.parametrize(
    "text",
    [
        *XE_RESET,
        "xe 0000:03:00.0: [drm] *ERROR* CRITICAL: Xe has declared device 0000:03:00.0 as wedged.",
        "xe 0000:03:00.0: [drm] GT0: reset started",
        "i915 0000:00:02.0: [drm] GPU HANG: ecode 12:1:85dffffb, in python [4242]",
        "i915 0000:00:02.0: [drm] Resetting rcs0 for preemption time out",
        "amdgpu 0004:01:00.0: amdgpu: GPU reset begin!",
        "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx timeout, signaled seq=82, emitted seq=85",
        "NVRM: Xid (PCI:0000:01:00): 79, pid=1234, name=ollama, GPU has fallen off the bus.",
    ],
)
def test_words_of_the_drivers_are_known(text: str) -> None:
    (found,) = incidents([Line(at_s=1.0, text=text)])
    assert found.words == text


@pytest.mark.parametrize(
    "text",
    [
        "xe 0000:03:00.0: [drm] Using GuC firmware from xe/bmg_guc_70.bin version 70.36.0",
        "xe 0000:03:00.0: [drm] GT0: GuC load done",
        "amdgpu 0000:07:00.0: amdgpu: recover vram bo from shadow done",
        "usb 1-1: reset high-speed USB device number 2 using xhci_hcd",
        "python[27472]: segfault at 0 ip 00007f364a774219",
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.86.15",
    ],
)
def test_other_lines_are_no_resets(text: str) -> None:
    assert incidents([Line(at_s=1.0, text=text)]) == ()


def test_lines_of_one_reset_are_one_and_another_card_or_time_is_another() -> None:
    lines = [Line(at_s=at, text=text) for at, text in zip((1.0, 1.2), XE_RESET, strict=True)]
    lines += [Line(at_s=1.3, text=XE_RESET[0].replace("3d:00", "b1:00")), Line(at_s=60.0, text=XE_RESET[0])]
    assert [one.device for one in incidents(lines)] == ["0000:3d:00.0", "0000:b1:00.0", "0000:3d:00.0"]


def test_record_of_the_kernel_is_read() -> None:
    assert record(f"4,1234,98765432,-;{XE_RESET[0]}\n SUBSYSTEM=pci\n") == Line(at_s=98.765432, text=XE_RESET[0])
    assert record(" SUBSYSTEM=pci") is None


def test_only_what_comes_after_the_beginning_counts(tmp_path: Path) -> None:
    log = tmp_path / "dev/kmsg"
    log.parent.mkdir()
    log.write_text(f"4,1,1000000,-;{XE_RESET[0]}\n")
    seen = KernelLog(tmp_path)
    with log.open("a") as file:
        file.write(f"4,2,50000000,-;{XE_RESET[0]}\n4,3,50100000,-;{XE_RESET[1]}\n")
    found = seen.since()
    seen.close()
    assert not isinstance(found, Missing)
    assert [one.words for one in found] == [XE_RESET[0]]


def test_quiet_log_is_no_reset(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/kmsg").write_text("6,1,1,-;nothing\n")
    seen = KernelLog(tmp_path)
    assert seen.since() == ()
    seen.close()


def test_journal_stands_in_for_a_log_that_only_root_reads(tmp_path: Path) -> None:
    asked: list[Sequence[str]] = []

    def journal(arguments: Sequence[str]) -> str:
        asked.append(arguments)
        return f"1796049000.123456 kernel: {XE_RESET[0]}\n-- No entries --\n"

    found = KernelLog(tmp_path, ask=journal, now_s=lambda: 1796048990.0).since()
    assert not isinstance(found, Missing)
    assert len(found) == 1
    assert "--since=@1796048990" in asked[0]


def test_log_and_journal_that_nobody_may_read_are_no_sensor(tmp_path: Path) -> None:
    def refused(_arguments: Sequence[str]) -> str:
        raise subprocess.CalledProcessError(1, "journalctl")

    found = KernelLog(tmp_path, ask=refused).since()
    assert isinstance(found, Missing)
    assert found.missing is MissingReason.NO_SENSOR
    assert "/dev/kmsg: No such file" in found.detail
