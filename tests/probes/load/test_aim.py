"""What the inventory says of an address holds where the command line says nothing."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from probes.context import Context
from probes.errors import UsageError
from probes.evidence import FleetScope
from probes.load.aim import Aim, aim_at
from tests.probing import fleet, service

URL = "https://127.0.0.1:8443/v3"


def aimed(context: Context, entry: Mapping[str, Any], environ: Mapping[str, str] | None = None, **given: Any) -> Aim:
    words = {"service": None, "url": URL, "key_env": None, "ca_file": None, "insecure": False, "allow_load": False} | given
    inventory = fleet(service("text", url="${TEXT_URL}", **entry))
    aim, _ = aim_at(argparse.Namespace(**words), {"TEXT_URL": URL, **(environ or {})}, inventory, lambda *_: context)
    return aim


def test_name_limits_key_and_authority_of_a_service_are_those_of_the_inventory(context: Context) -> None:
    (context.root / "authority.pem").touch()
    entry = {"api_key": "${TEXT_KEY}", "ca_file": "authority.pem"}
    aim = aimed(context, entry, {"TEXT_KEY": "a-key-for-the-test"})
    assert (aim.subject, aim.scope, aim.shown) == ("text", FleetScope(service="text"), "${TEXT_URL}")
    assert aim.permission.limits is not None
    assert aim.gate.key == "a-key-for-the-test"
    assert aim.gate.ca_file == str((context.root / "authority.pem").resolve())
    assert isinstance(aim.found, list)
    assert {door.ca_file for door in aim.found} == {aim.gate.ca_file}


def test_a_service_whose_certificate_is_not_verified_is_asked_so_here_too(context: Context) -> None:
    assert not aimed(context, {}).gate.insecure
    aim = aimed(context, {"insecure_tls": True})
    assert aim.gate.insecure
    assert isinstance(aim.found, list)
    assert all(door.insecure for door in aim.found)


def test_what_the_command_line_says_comes_first(context: Context, tmp_path: Path) -> None:
    own = tmp_path / "own.pem"
    own.touch()
    assert aimed(context, {"ca_file": "authority.pem"}, ca_file=str(own)).gate.ca_file == str(own.resolve())


def test_an_authority_that_is_not_there_is_told_by_its_place(context: Context) -> None:
    with pytest.raises(UsageError, match=r"^ca_file .*authority\.pem: does not exist"):
        aimed(context, {"ca_file": "authority.pem"})
