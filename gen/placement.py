"""Who runs where by the inventory's word: the cards of each host, the services on each card, and what nobody has settled."""

from __future__ import annotations

from probes.fleet import Fleet, Unknown


def cards_of(fleet: Fleet, host: str) -> tuple[str, ...]:
    """Name the devices that are declared to be in a host."""
    return tuple(name for name, device in fleet.devices.items() if device.host == host)


def cards_open(fleet: Fleet, host: str) -> tuple[str, ...]:
    """Name the devices of which nobody has said whether this host holds them."""
    return tuple(name for name, device in fleet.devices.items() if _may_be(device.host, host))


def services_on(fleet: Fleet, device: str) -> tuple[str, ...]:
    """Name the services that are declared to use a device, co-tenants with them."""
    users = [name for name, service in fleet.services.items() if service.device == device]
    return tuple(dict.fromkeys([*users, *(pair.tenant for pair in fleet.co_tenants if pair.device == device)]))


def services_open(fleet: Fleet, device: str) -> tuple[str, ...]:
    """Name the services that may use a device: those left open among some of which it is one, or anywhere on its host."""
    host = fleet.devices[device].host
    return tuple(
        name
        for name, service in fleet.services.items()
        if isinstance(service.device, Unknown)
        and (device in service.device.among or (not service.device.among and service.host == host))
    )


def homeless(fleet: Fleet, host: str | None) -> tuple[str, ...]:
    """Name the services of a host whose device nobody has settled; of no host, those whose host is open as well."""
    return tuple(
        name
        for name, service in fleet.services.items()
        if isinstance(service.device, Unknown) and (isinstance(service.host, Unknown) if host is None else service.host == host)
    )


def shared(fleet: Fleet, service: str) -> str:
    """Name what a co-tenant shares with the others on its card; '' for any other service."""
    return next((pair.resource for pair in fleet.co_tenants if pair.tenant == service), "")


def _may_be(answer: str | Unknown, name: str) -> bool:
    return isinstance(answer, Unknown) and (not answer.among or name in answer.among)
