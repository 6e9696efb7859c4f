"""Options and fixtures of the benchmarks: `pytest probes/micro/bench_NAME.py --benchmark-enable --ir FOLDER`."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.micro.bench import Bench
from probes.micro.listener import Listener
from probes.sensors.power import find_sensor
from probes.telemetry import silence


def pytest_configure() -> None:
    """Keep OpenVINO, which the benchmarks import, from reporting home."""
    silence()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("inference-adr")
    group.addoption("--ir", type=Path, help="model folder with openvino_model.xml")
    group.addoption("--device", default="CPU", help="OpenVINO device (default: CPU)")
    group.addoption("--quick", action="store_true", help="shorter prompts and answers")
    group.addoption("--core", action="store_true", help="only the arms that decide")
    group.addoption("--repetitions", type=int, help="rounds of each arm (default: what the benchmark was made for)")
    group.addoption("--budget", type=float, help="seconds for the measured rounds (default: what the benchmark was made for)")
    group.addoption("--head", type=Path, help="EAGLE-3 head to measure in place of one with random weights")
    group.addoption("--draft", type=Path, help="draft model to measure in place of a head")


@pytest.fixture
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    option = request.config.getoption
    if option("ir") is None:
        pytest.skip("no model: name its folder with --ir")
    listeners = (p for p in request.config.pluginmanager.get_plugins() if isinstance(p, Listener))
    listener = next(listeners, Listener(lambda _line: None))
    return Bench(
        benchmark=request.getfixturevalue("benchmark"),
        ir=option("ir"),
        device=option("device"),
        quick=option("quick"),
        core=option("core"),
        repetitions=option("repetitions"),
        budget_s=option("budget"),
        head=option("head"),
        draft=option("draft"),
        scratch=tmp_path,
        sensor=find_sensor(option("device")),
        progress=listener.progress,
    )
