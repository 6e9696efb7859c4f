"""The line from a benchmark that pytest runs to whoever started pytest."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pydantic import JsonValue


class Listener:
    """A pytest plugin that passes progress on and keeps the words of what failed or was skipped."""

    def __init__(self, emit: Callable[[JsonValue], None]) -> None:
        self.words: list[str] = []
        self._emit = emit

    def progress(self, line: str) -> None:
        self._emit(line)

    def pytest_benchmark_generate_machine_info(self) -> dict[str, str]:
        """Leave the machine to the run's host facts; the plugin's own entry holds the host name."""
        return {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            # RuntimeError is how every runtime's own exception arrives; its class says nothing.
            self.words.append(str(report.longrepr if crash is None else crash.message).removeprefix("RuntimeError: "))
        elif report.skipped and isinstance(report.longrepr, tuple):
            self.words.append(report.longrepr[2])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.words.append(str(report.longrepr))
