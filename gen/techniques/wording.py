"""How rules put names, counts and values into sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gen.knowledge.schema import ENGINE_TITLES
from gen.versions import known_version
from gen.view import ServiceView, View
from probes.evidence import Missing, Run

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_FEW = 3


def spell(number: int) -> str:
    """Write small numbers as words."""
    return _NUMBERS[number] if number < len(_NUMBERS) else str(number)


def listing(items: Iterable[str]) -> str:
    """Join as people do: 'a', 'a and b', 'a, b and c'."""
    parts = list(items)
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else "none"


def capital(text: str) -> str:
    """Begin a sentence; the rest keeps its letters."""
    return text[:1].upper() + text[1:]


def runtime_title(service: ServiceView) -> str:
    """Name a service's runtime and release for people, without the build that ends it."""
    name = "a runtime that is not identified" if service.engine is None else ENGINE_TITLES[service.engine]
    known = known_version(service.version)
    release = service.version if known is None else ".".join(map(str, known.numbers))
    return f"{name} {release}" if release else name


def speaks_for(run: Run) -> str:
    """Name the device, the runtime and its version that a measurement speaks for."""
    device = "no device told" if isinstance(run.device, Missing) else run.device.full_name or run.device.name
    runtime = "no runtime told" if isinstance(run.runtime, Missing) else run.runtime.name
    version = "" if isinstance(run.runtime, Missing) or isinstance(run.runtime.version, Missing) else f" {run.runtime.version}"
    return f"{device}, {runtime}{version}"


def titles(services: Iterable[ServiceView]) -> str:
    """Name services one by one."""
    return listing(service.title for service in services)


def group(services: Sequence[ServiceView]) -> str:
    """Name a group of text services by its runtime: 'OVMS text services'."""
    engines = {service.engine for service in services}
    engine = engines.pop() if len(engines) == 1 else None
    return "text services" if engine is None else f"{ENGINE_TITLES[engine]} text services"


def where(some: Sequence[ServiceView], everyone: Sequence[ServiceView]) -> str:
    """Say on which of a group: 'all six OVMS text services', 'four of six text services', or by name."""
    if len(everyone) == 1:
        return everyone[0].title
    if len(some) == len(everyone):
        return f"all {spell(len(everyone))} {group(everyone)}"
    return f"{spell(len(some))} of {spell(len(everyone))} {group(everyone)}" if len(some) > _FEW else titles(some)


def spread_out(values: Sequence[tuple[ServiceView, str]], last: str = "") -> str:
    """Say which value is where, the commonest first: 'INT4 on all six OVMS text services'; `last` ends the list."""
    everyone = [service for service, _ in values]
    groups: dict[str, list[ServiceView]] = {}
    for service, value in values:
        groups.setdefault(value, []).append(service)
    ordered = sorted(groups.items(), key=lambda item: (item[0] == last, -len(item[1])))
    return "; ".join(f"{value} on {where(some, everyone)}" for value, some in ordered)


def amount(number: float, unit: str) -> str:
    """Write a number with its unit in the right number: '1 point', '2 points'."""
    return f"{number:g} {unit}{'' if number == 1 else 's'}"


def family(view: View, devices: Iterable[str]) -> str | None:
    """Name devices by what they have in common: two cards called 'X (first)' and 'X (second)' are 'X'."""
    names = {view.fleet.devices[name].title.split(" (")[0] for name in devices}
    return names.pop() if len(names) == 1 else None
