"""All sensors of one server over one stretch: real memory of a real process, the rest from a folder tree as of a machine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pynvml
import pytest

from probes.evidence import Metric, Missing, MissingReason
from probes.sensors.listener import Listener
from probes.sensors.server import Figures, Watch, absent, elsewhere
from probes.sensors.track import no_sensor
from tests.probes.sensors.nvml import FakeNvml, Process
from tests.probes.sensors.trees import I915_OLD, XE, graphics, hwmon, opened, program, rapl, tree

HERE = Listener(pids=(os.getpid(),))
NOBODY = Listener(why=no_sensor("port 8000 is held by docker-proxy"))
NO_DRIVER = FakeNvml(broken=pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
CARD = "0000:03:00.0"


def nothing() -> None:
    """Let time pass and nothing else happen."""


def watched(
    root: Path, *, listener: Listener = HERE, library: FakeNvml = NO_DRIVER, during: Callable[[], None] = nothing
) -> Figures:
    """Read for a moment; what happens in it comes between the first and the last reading."""
    watch = Watch(listener, root=root, library=library, xpu_smi=root / "xpu-smi", interval_s=60.0)
    with watch:
        start_ns = time.perf_counter_ns()
        during()
        time.sleep(0.01)
        end_ns = time.perf_counter_ns()
    return watch.figures(start_ns, end_ns, 100.0)


def value(figures: Figures, name: str) -> float:
    metric = found(figures, name)
    assert metric.missing is None, metric.missing
    return metric.samples[0]


def why(figures: Figures, name: str) -> Missing:
    missing = found(figures, name).missing
    assert missing is not None
    return missing


def found(figures: Figures, name: str) -> Metric:
    return next(metric for metric in figures.metrics if metric.name == name)


def test_machine_without_sensors_has_memory_and_reasons(tmp_path: Path) -> None:
    figures = watched(tmp_path)
    assert value(figures, "memory_bytes") > 2**20
    assert value(figures, "system_memory_bytes") > value(figures, "memory_bytes")
    assert why(figures, "vram_bytes").missing is MissingReason.NOT_APPLICABLE
    assert why(figures, "device_resets").missing is MissingReason.NOT_APPLICABLE
    for name in ("cpu_power_w", "power_w", "energy_per_token_j"):
        assert why(figures, name).missing is MissingReason.NO_SENSOR
        assert why(figures, name).detail


def test_server_on_the_processor_draws_its_power(tmp_path: Path) -> None:
    counter = rapl(tmp_path, 262_143_000_000)
    figures = watched(tmp_path, during=lambda: wrapped(counter))
    assert value(figures, "power_w") == value(figures, "cpu_power_w") > 0
    assert value(figures, "energy_per_token_j") == pytest.approx(value(figures, "power_w") / 100.0)
    assert figures.native["computes_on"] == "processor"


def wrapped(counter: Path) -> None:
    counter.write_text("671150\n")


def test_energy_is_that_of_the_whole_stretch_across_a_wrap(tmp_path: Path) -> None:
    counter = rapl(tmp_path, 262_143_000_000)
    watch = Watch(HERE, root=tmp_path, library=NO_DRIVER, interval_s=60.0)
    with watch:
        wrapped(counter)
    (track,) = [track for track in watch._sampler.tracks if track.source.label == "RAPL package-0"]
    span = track.at_ns[0], track.at_ns[-1]
    joules = value(watch.figures(*span, None), "cpu_power_w") * (span[1] - span[0]) / 1e9
    assert joules == pytest.approx((262_143_328_850 + 1 - 262_143_000_000 + 671_150) / 1e6, rel=1e-6)


def test_server_on_an_arc_card_has_the_memory_and_energy_of_that_card(tmp_path: Path) -> None:
    graphics(tmp_path)
    opened(tmp_path, os.getpid(), 5, "/dev/dri/renderD128", XE.format(card=CARD, total=9000, resident=8192))
    counter = hwmon(tmp_path, 3, CARD, 1_000_000)
    hwmon(tmp_path, 4, "0000:07:00.0", 5)
    figures = watched(tmp_path, during=lambda: wrapped_card(counter))
    assert value(figures, "vram_bytes") == 8192 * 2**10
    assert value(figures, "power_w") == value(figures, "gpu_power_w") > 0
    assert why(figures, "cpu_power_w").missing is MissingReason.NO_SENSOR
    assert figures.native["computes_on"] == "card"


def wrapped_card(counter: Path) -> None:
    counter.write_text("3000000\n")


def test_card_without_a_counter_names_every_sensor_that_is_not_there(tmp_path: Path) -> None:
    opened(tmp_path, os.getpid(), 5, "/dev/dri/renderD128", XE.format(card=CARD, total=9000, resident=8192))
    missing = why(watched(tmp_path), "power_w")
    assert f"no energy counter of the Intel GPU at {CARD}" in missing.detail
    assert "xpu-smi" in missing.detail


def test_card_whose_driver_tells_of_no_process_has_its_whole_memory_by_xpu_smi(tmp_path: Path) -> None:
    """Kernels before 6.5 list a client of i915 without its memory; who holds it, and whether it computes, nobody says."""
    opened(tmp_path, os.getpid(), 5, "/dev/dri/renderD128", I915_OLD.format(card=CARD))
    head = "Timestamp, DeviceId, GPU Power (W), GPU Memory Used (MiB)"
    program(tmp_path, head, "06:14:46.000,    0, 90.25, 8192.00")
    figures = watched(tmp_path)
    assert value(figures, "vram_bytes") == 8192 * 2**20
    assert value(figures, "gpu_power_w") == 90.25
    assert "nothing tells whether the server computes on a card" in why(figures, "power_w").detail
    readings = figures.native["readings"]
    assert isinstance(readings, dict)
    assert f"xpu-smi {CARD}, whole card" in readings


def test_card_whose_driver_tells_of_no_process_has_no_sensor_without_xpu_smi(tmp_path: Path) -> None:
    """Not "holds no memory": nobody has seen that it holds none."""
    opened(tmp_path, os.getpid(), 5, "/dev/dri/renderD128", I915_OLD.format(card=CARD))
    missing = why(watched(tmp_path), "vram_bytes")
    assert missing.missing is MissingReason.NO_SENSOR
    assert missing.detail.startswith(f"the driver of {CARD} tells of no process's memory; xpu-smi: ")


def test_counter_that_vanishes_leaves_no_power(tmp_path: Path) -> None:
    opened(tmp_path, os.getpid(), 5, "/dev/dri/renderD128", XE.format(card=CARD, total=9000, resident=8192))
    counter = hwmon(tmp_path, 0, CARD, 1)
    assert "no two readings" in why(watched(tmp_path, during=counter.unlink), "power_w").detail


def test_server_on_nvidia_cards_has_the_sum_of_those_it_computes_on(tmp_path: Path) -> None:
    mine = [Process(os.getpid(), 2**30)]
    library = FakeNvml(processes=[mine, mine, [Process(1, 2**33)]], step_mj=5_000)
    figures = watched(tmp_path, library=library)
    assert value(figures, "vram_bytes") == 2 * 2**30
    assert value(figures, "power_w") > 0
    assert library.open is False


def test_server_in_a_container_has_the_only_card(tmp_path: Path) -> None:
    opened(tmp_path, os.getpid(), 5, "/dev/nvidia0")
    figures = watched(tmp_path, library=FakeNvml(step_mj=5_000, used=7 * 2**30))
    assert value(figures, "vram_bytes") == 7 * 2**30
    unclear = watched(tmp_path, library=FakeNvml(processes=[[], []]))
    assert "nothing says which" in why(unclear, "vram_bytes").detail


def test_server_that_is_not_known_has_no_memory_and_no_device(tmp_path: Path) -> None:
    graphics(tmp_path)
    figures = watched(tmp_path, listener=NOBODY)
    for name in ("memory_bytes", "vram_bytes", "gpu_power_w"):
        assert why(figures, name).detail == "port 8000 is held by docker-proxy"
    assert "nothing tells whether" in why(figures, "power_w").detail


def test_machine_without_a_card_has_the_power_of_its_processor_whoever_serves(tmp_path: Path) -> None:
    counter = rapl(tmp_path, 1)
    figures = watched(tmp_path, listener=NOBODY, during=lambda: wrapped(counter))
    assert value(figures, "power_w") > 0
    assert why(figures, "memory_bytes").missing is MissingReason.NO_SENSOR


def test_resets_are_counted_and_quiet_is_a_measured_zero(tmp_path: Path) -> None:
    graphics(tmp_path)
    assert why(watched(tmp_path), "device_resets").missing is MissingReason.NO_SENSOR
    tree(tmp_path, {"dev/kmsg": "6,1,1,-;nothing"})
    log = tmp_path / "dev/kmsg"
    assert value(watched(tmp_path), "device_resets") == 0.0

    def reset() -> None:
        with log.open("a") as file:
            file.write("4,2,5,-;NVRM: Xid (PCI:0000:01:00): 79, pid=1, GPU has fallen off the bus.\n")

    figures = watched(tmp_path, during=reset)
    assert value(figures, "device_resets") == 1.0
    assert figures.native["resets"] == ["NVRM: Xid (PCI:0000:01:00): 79, pid=1, GPU has fallen off the bus."]


def test_xid_events_stand_in_for_a_log_that_only_root_reads(tmp_path: Path) -> None:
    figures = watched(tmp_path, library=FakeNvml(xids=[79]))
    assert value(figures, "device_resets") == 1.0


def test_process_that_ended_has_no_memory_of_zero(tmp_path: Path) -> None:
    missing = why(watched(tmp_path, listener=Listener(pids=(2**22 + 1,))), "memory_bytes")
    assert missing.detail == "the server's process is gone"


def test_run_without_a_measured_request_has_reasons_only(tmp_path: Path) -> None:
    watch = Watch(HERE, root=tmp_path, library=NO_DRIVER)
    with watch:
        pass
    assert all(metric.missing is not None for metric in watch.figures(0, 0, None).metrics)


def test_server_elsewhere_gets_no_reading_of_this_machine() -> None:
    figures = absent(elsewhere())
    assert {metric.name for metric in figures.metrics} >= {"memory_bytes", "vram_bytes", "power_w", "device_resets"}
    assert all(metric.missing is not None and "another machine" in metric.missing.detail for metric in figures.metrics)
