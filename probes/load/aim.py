"""What a command was pointed at: the way to an address, what may be sent there, and the names it goes by."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from probes.context import Context
from probes.endpoints.address import Address, check_key, key_from, parse_address
from probes.endpoints.quoting import Quoter
from probes.errors import ProbeError, UsageError
from probes.evidence import FleetScope, Scope
from probes.fleet import Fleet, Service, reference_name, resolve
from probes.load.permission import Permission, permission
from probes.load.run import Gate, doors
from probes.load.task import Door


@dataclass(frozen=True, kw_only=True)
class Aim:
    """One address. `found` are the ways to its host, or why there is none, which is a result and no error of the user's."""

    gate: Gate
    permission: Permission
    subject: str
    scope: Scope
    shown: str
    quoter: Quoter
    found: list[Door] | ProbeError


def add_where(command: argparse.ArgumentParser) -> None:
    """Add the two ways to say what is asked."""
    where = command.add_mutually_exclusive_group(required=True)
    where.add_argument("--url", help="the server, with or without its API prefix: http://host:8000/v3")
    where.add_argument("--service", metavar="NAME", help="a service of the inventory in place of an address")


def service_of(given: argparse.Namespace, fleet: Fleet | None) -> Service | None:
    """Give the entry of the service that is named; None where an address is.

    Raises:
        UsageError: the inventory knows no such service, or there is none.
    """
    if given.service is None:
        return None
    if fleet is None:
        raise UsageError(f"--service {given.service}: there is no inventory here; expected --url, or --fleet with its file")
    if given.service not in fleet.services:
        close = difflib.get_close_matches(given.service, list(fleet.services), n=1)
        hint = f"; did you mean {close[0]}?" if close else ";"
        raise UsageError(
            f"--service {given.service}: is not in the inventory{hint} expected one of {', '.join(fleet.services)}"
        )
    return fleet.services[given.service]


def aim_at(
    given: argparse.Namespace,
    environ: Mapping[str, str],
    fleet: Fleet | None,
    context_for: Callable[[Fleet | None, Sequence[str]], Context],
) -> tuple[Aim, Context]:
    """Find out what is asked and what may be sent there; what the inventory says of the address stands in for words left out.

    Raises:
        UsageError: the variable of the key or of the address is empty, or the file of the authority is not there.
        InputError: the address or the key cannot be used as written.
    """
    address = _address(given, service_of(given, fleet), environ)
    key = key_from(environ, given.key_env) if given.key_env else None
    gate = Gate(address=address)
    found: list[Door] | ProbeError
    try:
        found = doors(gate)
    except ProbeError as exc:
        found = exc
    hosts = [str(door.address[0]) for door in found] if isinstance(found, list) else []
    allowed = permission(address, hosts, fleet, environ, allow_load=given.allow_load, named=given.service)
    service = allowed.service
    if key is None and service is not None and service.api_key:
        key = resolve(service.api_key, environ)
    if key is not None:
        gate = replace(gate, key=check_key(key, given.key_env or "key"))
    context = context_for(fleet, [key] if key else [])
    gate = _trusting(gate, given, service, context.root)
    if isinstance(found, list):
        found = [replace(door, ca_file=gate.ca_file, insecure=gate.insecure) for door in found]
    shown = service.url if service is not None and service.url else address.root + address.api
    aim = Aim(
        gate=gate,
        permission=allowed,
        subject=allowed.name or urlsplit(address.root).netloc,
        scope=FleetScope(service=allowed.name) if allowed.name else context.local,
        shown=shown,
        quoter=Quoter(context.redact, key=key, address=address, shown=shown),
        found=found,
    )
    return aim, context


def _address(given: argparse.Namespace, service: Service | None, environ: Mapping[str, str]) -> Address:
    if service is None:
        return parse_address(given.url, "--url")
    url = resolve(service.url, environ) if service.url else None
    if url is None:
        what = f"{reference_name(service.url)} is not set" if service.url else "has no 'url' in the inventory"
        raise UsageError(f"--service {given.service}: {what}; expected its address")
    return parse_address(url, f"--service {given.service}")


def _trusting(gate: Gate, given: argparse.Namespace, service: Service | None, root: Path) -> Gate:
    """Say whom TLS trusts; a file of the inventory lies under its folder."""
    place, ca_file = "--ca-file", given.ca_file
    if ca_file is None and service is not None and service.ca_file:
        place, ca_file = "ca_file", root / service.ca_file
    if ca_file is not None and not Path(ca_file).is_file():
        raise UsageError(f"{place} {ca_file}: does not exist; expected a file of PEM certificates")
    insecure = given.insecure or (service is not None and service.insecure_tls)
    return replace(gate, ca_file=str(Path(ca_file).resolve()) if ca_file is not None else "", insecure=insecure)
