"""Importing OpenVINO through this project leaves no trace for its telemetry and loads none of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from probes.endpoints.embedded.engine import importable


def test_openvino_takes_the_stub_and_writes_no_client_id(tmp_path: Path) -> None:
    """The real package would create `intel/openvino_ga_cid` in the home folder before it sends anything."""
    code = (
        "from probes import telemetry; telemetry.silence(); import sys, openvino_genai;"
        "print([name for name in sys.modules if name.startswith('openvino_telemetry.')],"
        " 'openvino.tools.ovc.telemetry_stub' in sys.modules)"
    )
    environ = {name: value for name, value in importable(os.environ).items() if name not in {"CI", "TF_BUILD", "JENKINS_URL"}}
    child = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code],
        env={**environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert child.stdout.split() == ["[]", "True"]
    assert list(tmp_path.iterdir()) == []
