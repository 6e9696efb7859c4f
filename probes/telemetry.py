"""Keeps OpenVINO from reporting to its vendor: a probe talks to the inventory and to nobody else."""

from __future__ import annotations

import sys


def silence() -> None:
    """Make `import openvino` take its own stub for the telemetry package; call it before that import.

    `openvino.tools.ovc` sends an 'import' event to Google Analytics at import time, without asking, unless
    the home folder holds an opt-out file or CI is set. It falls back to a stub when the package cannot be imported
    (openvino/tools/ovc/telemetry_utils.py, 2026.4.1), and a None in `sys.modules` says exactly that.
    """
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
