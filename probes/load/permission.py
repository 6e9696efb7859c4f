"""How much load an address may be given: by the inventory, by being this machine, or by leave of the user."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from probes.endpoints.address import Address, parse_address
from probes.errors import InputError
from probes.fleet import Fleet, LatencyGuards, ProbeLimits, Service, resolve
from probes.load.task import Guards


@dataclass(frozen=True, kw_only=True)
class Permission:
    """What may be sent. `limits` None means no bound; `service` is the inventory's entry, with its name."""

    limits: ProbeLimits | None
    why: str
    name: str | None = None
    service: Service | None = None


def permission(
    address: Address,
    resolved: Iterable[str],
    fleet: Fleet | None,
    environ: Mapping[str, str],
    *,
    allow_load: bool,
    named: str | None = None,
) -> Permission:
    """Find the bounds of an address; those of the inventory hold whatever the user says on the command line.

    `named` is the service of the inventory that was asked for, where the address alone may stand for several.
    """
    found = _entry(address, fleet, environ) if named is None or fleet is None else (named, fleet.services[named])
    if found is not None:
        name, service = found
        return Permission(limits=service.probing, why=f"fleet.yml allows {name} no more", name=name, service=service)
    hosts = tuple(resolved)
    if hosts and all(is_this_machine(host) for host in hosts):
        return Permission(limits=None, why="the address is this machine")
    if allow_load:
        return Permission(limits=None, why="--allow-load")
    return Permission(
        limits=ProbeLimits(), why="the address is neither in the inventory nor this machine; --allow-load lifts the limits"
    )


def latency_guards(limits: ProbeLimits | None, timeout_s: float, *, stall_s: float) -> Guards:
    """Say when a run stops at once: as the inventory has it, else by the same defaults, and after `stall_s` of silence."""
    told = limits.guards if limits is not None else LatencyGuards()
    return Guards(
        timeout_s=timeout_s,
        stall_s=stall_s if limits is None else limits.silence_s,
        first_byte_s=min(told.first_byte_s, timeout_s),
        itl_s=told.itl_s,
        latency_s=timeout_s / 2 if told.latency_s is None else told.latency_s,
    )


def is_this_machine(host: str) -> bool:
    """Tell whether a numeric address belongs to this machine: loopback, or one that a socket here can be bound to."""
    plain = host.partition("%")[0]
    address = ipaddress.ip_address(plain)
    if address.is_loopback:
        return True
    if address.is_unspecified or address.is_multicast:
        return address.is_unspecified
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((plain, 0))
    except OSError:
        return False
    return True


def _entry(address: Address, fleet: Fleet | None, environ: Mapping[str, str]) -> tuple[str, Service] | None:
    for name, service in (fleet.services if fleet is not None else {}).items():
        url = resolve(service.url, environ) if service.url else None
        if url is None:
            continue
        try:
            if parse_address(url, name).root == address.root:
                return name, service
        except InputError:
            continue
    return None
