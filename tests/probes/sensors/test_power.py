"""Power is energy over time by labelled counters, or a reason; never 0 W."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.evidence import Missing, MissingReason
from probes.sensors.power import Counter, Energy, Sensor, average_power_w, find_sensor, read_energy


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return root


def rapl(root: Path, zone: str, name: str, energy: int) -> Path:
    folder = f"sys/class/powercap/{zone}"
    return tree(
        root, {f"{folder}/name": name, f"{folder}/energy_uj": str(energy), f"{folder}/max_energy_range_uj": "262143328850"}
    )


def card(root: Path, number: int, files: dict[str, str]) -> Path:
    return tree(root, {f"sys/class/hwmon/hwmon{number}/{name}": text for name, text in files.items()})


def sensor(*wraps: int | None) -> Sensor:
    return Sensor(counters=tuple(Counter(label=f"c{n}", file=Path("x"), wraps_at_uj=w) for n, w in enumerate(wraps)))


def energy(at_s: float, *microjoules: int) -> Energy:
    return Energy(at_s=at_s, microjoules=microjoules)


def test_packages_are_summed_and_their_parts_and_the_platform_are_not(tmp_path: Path) -> None:
    for zone, name in {"intel-rapl:0": "package-0", "intel-rapl:0:0": "core", "intel-rapl:1": "package-1"}.items():
        rapl(tmp_path, zone, name, 1_000_000)
    rapl(tmp_path, "intel-rapl:2", "psys", 1_000_000)
    rapl(tmp_path, "intel-rapl-mmio:0", "package-0", 1_000_000)
    found = find_sensor("CPU", tmp_path)
    assert isinstance(found, Sensor)
    assert found.label == "RAPL package-0 + RAPL package-1"
    before = read_energy(found, clock=lambda: 10.0)
    rapl(tmp_path, "intel-rapl:0", "package-0", 61_000_000)
    rapl(tmp_path, "intel-rapl:1", "package-1", 31_000_000)
    after = read_energy(found, clock=lambda: 12.0)
    assert isinstance(before, Energy)
    assert isinstance(after, Energy)
    assert average_power_w(found, before, after) == 45.0


def test_a_card_is_chosen_by_label_not_by_number(tmp_path: Path) -> None:
    card(
        tmp_path,
        3,
        {"name": "xe", "energy1_input": "5", "energy1_label": "pkg", "energy2_input": "7", "energy2_label": "card"},
    )
    card(tmp_path, 4, {"name": "nvme", "temp1_input": "40"})
    found = find_sensor("GPU.0", tmp_path)
    assert isinstance(found, Sensor)
    assert found.label == "xe card"
    assert found.counters[0].file.name == "energy2_input"


def test_a_package_counter_says_that_it_is_one_and_the_first_without_a_label_is_the_card(tmp_path: Path) -> None:
    one = find_sensor("GPU", card(tmp_path / "a", 0, {"name": "xe", "energy2_input": "7", "energy2_label": "pkg"}))
    other = find_sensor("GPU", card(tmp_path / "b", 0, {"name": "i915", "energy1_input": "7", "energy2_input": "9"}))
    assert isinstance(one, Sensor)
    assert isinstance(other, Sensor)
    assert (one.label, other.label) == ("xe pkg", "i915 card")
    assert other.counters[0].file.name == "energy1_input"


def test_two_cards_are_not_guessed_between(tmp_path: Path) -> None:
    for number in (0, 1):
        card(tmp_path, number, {"name": "xe", "energy1_input": "5"})
    found = find_sensor("GPU.1", tmp_path)
    assert isinstance(found, Missing)
    assert found.detail.startswith("2 cards have energy counters")


@pytest.mark.parametrize("device", ["CPU", "GPU", "GPU.1", "NPU"])
def test_no_counter_is_no_sensor(tmp_path: Path, device: str) -> None:
    found = find_sensor(device, tmp_path)
    assert isinstance(found, Missing)
    assert found.missing is MissingReason.NO_SENSOR
    assert found.detail


def test_a_counter_that_cannot_be_read_is_no_sensor(tmp_path: Path) -> None:
    """Most systems keep it for root; here a folder in its place refuses root as well."""
    rapl(tmp_path, "intel-rapl:0", "package-0", 1)
    counter = tmp_path / "sys/class/powercap/intel-rapl:0/energy_uj"
    counter.unlink()
    counter.mkdir()
    found = find_sensor("CPU", tmp_path)
    assert isinstance(found, Missing)
    assert (found.missing, "Is a directory" in found.detail) == (MissingReason.NO_SENSOR, True)


def test_a_counter_that_is_no_number_is_no_sensor(tmp_path: Path) -> None:
    rapl(tmp_path, "intel-rapl:0", "package-0", 1)
    (tmp_path / "sys/class/powercap/intel-rapl:0/energy_uj").write_text("N/A\n")
    assert isinstance(find_sensor("CPU", tmp_path), Missing)


def test_a_counter_that_wraps_goes_on() -> None:
    assert average_power_w(sensor(999_999), energy(0, 900_000), energy(1, 400_000)) == 0.5


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (energy(0, 5, 5), energy(1, 9, 5), "c1: the counter stands still"),
        (energy(0, 5, 5), energy(1, 9, 4), "c1: the counter went backwards"),
        (energy(1, 5, 5), energy(1, 9, 9), "no time passed"),
    ],
)
def test_a_counter_that_does_not_count_is_no_sensor_and_never_zero(before: Energy, after: Energy, words: str) -> None:
    power = average_power_w(sensor(None, None), before, after)
    assert isinstance(power, Missing)
    assert power.missing is MissingReason.NO_SENSOR
    assert words in power.detail
