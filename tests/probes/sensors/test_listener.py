"""The process behind a port, real ones; and those that only lead to another."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import psutil
import pytest

from probes.evidence import MissingReason
from probes.sensors.listener import find_listener, judge
from tests.servers import free_port


class Named(psutil.Process):
    """This process under another program's name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._called = name

    def name(self) -> str:
        return self._called


def test_own_port_leads_to_this_process() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = find_listener("127.0.0.1", server.getsockname()[1])
    assert (found.pids, found.why) == ((os.getpid(),), None)


def test_port_of_all_addresses_is_found_by_one_of_them() -> None:
    with socket.create_server(("0.0.0.0", 0)) as server:  # noqa: S104
        assert find_listener("127.0.0.1", server.getsockname()[1]).pids == (os.getpid(),)


def test_workers_that_share_the_socket_are_one_server_with_its_descendants() -> None:
    script = (
        "import socket, os, sys\n"
        "s = socket.create_server(('127.0.0.1', 0)); child = os.fork()\n"
        "print(s.getsockname()[1], flush=True) if child else None\n"
        "sys.stdin.read() if child else __import__('time').sleep(60)\n"
        "os.kill(child, 9)\n"
    )
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stdout is not None
        found = find_listener("127.0.0.1", int(process.stdout.readline()))
        assert found.pids == (process.pid,)
        assert len(found.members()) == 2
        process.communicate("")
    assert found.members() == []


def test_port_that_nobody_holds_is_told() -> None:
    why = find_listener("127.0.0.1", free_port()).why
    assert why is not None
    assert why.missing is MissingReason.NO_SENSOR


@pytest.mark.parametrize(("name", "elsewhere"), [("ssh", True), ("kubectl", True), ("docker-proxy", False), ("nginx", False)])
def test_what_leads_to_a_server_is_not_taken_for_one(name: str, elsewhere: bool) -> None:
    found = judge(8000, [Named(name)])
    assert (found.pids, found.elsewhere) == ((), elsewhere)
    assert found.why is not None
    assert name in found.why.detail


def test_any_other_program_is_the_server() -> None:
    assert judge(8000, [Named("llama-server")]).pids == (os.getpid(),)
