"""The machine that asks: processor, memory, system, and the settings that move inference timings."""

from __future__ import annotations

import hashlib
import os
import platform
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import psutil

from probes.accelerators import driver_words, read_accelerators
from probes.cgroups import cpu_limit, memory_limit
from probes.evidence import Host, HostTuning, Missing, MissingReason

GIB = 2**30
# What inference kernels are chosen by, weakest first within a family; the kernel's word -> ours.
_ISA = {
    "sse4_2": "sse4_2",
    "avx": "avx",
    "f16c": "f16c",
    "fma": "fma",
    "avx2": "avx2",
    "avx_vnni": "avx_vnni",
    "avx_vnni_int8": "avx_vnni_int8",
    "avx512f": "avx512f",
    "avx512_vnni": "avx512_vnni",
    "avx512_bf16": "avx512_bf16",
    "avx512_fp16": "avx512_fp16",
    "amx_tile": "amx_tile",
    "amx_int8": "amx_int8",
    "amx_bf16": "amx_bf16",
    "amx_fp16": "amx_fp16",
    "neon": "neon",
    "asimd": "neon",
    "asimdhp": "neon_fp16",
    "asimddp": "neon_dotprod",
    "i8mm": "i8mm",
    "bf16": "bf16",
    "sve": "sve",
    "sve2": "sve2",
    "sme": "sme",
}


def read_host(alias: str | None = None, *, root: Path = Path("/")) -> Host:
    """Read this machine; `root` is where its proc, sys and etc folders lie.

    The fingerprint is made of the processor's name, its cores, memory in whole GiB and the PCI ids
    of accelerators: stable between runs and driver updates, and free of host name and serial numbers.
    """
    processors = cpuinfo(_text(root / "proc/cpuinfo") or "")
    memory = meminfo(_text(root / "proc/meminfo") or "")
    accelerators = read_accelerators(root)
    cpu = cpu_name(processors)
    physical = physical_cores(processors) or _counted(psutil.cpu_count(logical=False))
    logical = len(processors) or os.cpu_count() or 1
    memory_bytes = memory.get("MemTotal") or psutil.virtual_memory().total
    print_of = fingerprint(cpu, physical, logical, memory_bytes, [item.name for item in accelerators])
    no_accelerator = Missing(missing=MissingReason.NOT_APPLICABLE, detail="no accelerator on the PCI bus")
    return Host(
        alias=alias or f"local-{print_of[:6]}",
        fingerprint=print_of,
        cpu=cpu,
        isa=isa(processors),
        physical_cores=physical,
        logical_cores=logical,
        memory_bytes=memory_bytes,
        os=os_name(_text(root / "etc/os-release") or ""),
        kernel=_text(root / "proc/sys/kernel/osrelease") or platform.release(),
        driver=driver_words(accelerators) or no_accelerator,
        tuning=_tuning(root, memory),
    )


def fingerprint(cpu: str, physical: int | Missing, logical: int, memory_bytes: int, accelerators: Iterable[str]) -> str:
    """Reduce hardware to 12 hex digits."""
    cores = f"{physical if isinstance(physical, int) else '?'}/{logical}"
    parts = [cpu, cores, f"{round(memory_bytes / GIB)} GiB", *sorted(accelerators)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def cpuinfo(text: str) -> tuple[dict[str, str], ...]:
    """Split /proc/cpuinfo into one mapping per logical processor.

    ARM kernels append a block about the board, which has no 'processor' field.
    """
    blocks = (_fields(block) for block in re.split(r"\n\s*\n", text))
    return tuple(block for block in blocks if block.get("processor", "").isdigit())


def cpu_name(processors: tuple[dict[str, str], ...]) -> str:
    """Name the processor; ARM kernels give numbers instead of a name."""
    first = processors[0] if processors else {}
    if name := first.get("model name") or first.get("Model"):
        return " ".join(name.split())
    if "CPU part" in first:
        return f"ARM implementer {first.get('CPU implementer', '?')} part {first['CPU part']}"
    return platform.processor() or platform.machine() or "unknown processor"


def physical_cores(processors: tuple[dict[str, str], ...]) -> int | None:
    """Count distinct cores; None where the kernel does not number them, as on ARM."""
    cores = {(p.get("physical id"), p.get("core id")) for p in processors}
    return len(cores) if cores and all(None not in core for core in cores) else None


def isa(processors: tuple[dict[str, str], ...]) -> tuple[str, ...]:
    """List the instruction sets that inference kernels are chosen by and that every core has."""
    flags = [set((p.get("flags") or p.get("Features") or "").split()) for p in processors]
    common = set.intersection(*flags) if flags else set()
    return tuple(dict.fromkeys(ours for theirs, ours in _ISA.items() if theirs in common))


def meminfo(text: str) -> dict[str, int]:
    """Read /proc/meminfo: sizes in bytes, huge pages as a count."""
    found = re.finditer(r"^([\w()]+):\s+(\d+)( kB)?$", text, re.MULTILINE)
    return {match[1]: int(match[2]) * (1024 if match[3] else 1) for match in found}


def os_name(release: str) -> str:
    """Name the system from /etc/os-release."""
    pretty = re.search(r'^PRETTY_NAME="?([^"\n]+)"?$', release, re.MULTILINE)
    return pretty[1] if pretty else f"{platform.system()} {platform.release()}"


def chosen(text: str) -> str | None:
    """Pick the bracketed word of a sysfs choice: 'always [madvise] never' is madvise."""
    found = re.search(r"\[(\w+)\]", text)
    return found[1] if found else None


def huge_pages(memory: Mapping[str, int]) -> str | None:
    """Say how many huge pages of which size are set aside, as in '64 of 2048 kB'."""
    total, size = memory.get("HugePages_Total"), memory.get("Hugepagesize")
    return None if total is None or size is None else f"{total} of {size // 1024} kB"


def _tuning(root: Path, memory: Mapping[str, int]) -> HostTuning:
    governors = {
        text for path in (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor") if (text := _text(path))
    }
    nodes = list((root / "sys/devices/system/node").glob("node[0-9]*"))
    transparent = chosen(_text(root / "sys/kernel/mm/transparent_hugepage/enabled") or "")
    return HostTuning(
        governor=", ".join(sorted(governors)) or _unread("no cpufreq governor in sysfs, as in most virtual machines"),
        huge_pages=huge_pages(memory) or _unread("no huge pages in /proc/meminfo"),
        transparent_huge_pages=transparent or _unread("no transparent_hugepage in sysfs"),
        swap_bytes=memory.get("SwapTotal", _unread("no SwapTotal in /proc/meminfo")),
        numa_nodes=len(nodes) or _unread("no NUMA nodes in sysfs"),
        container_cpu_limit=cpu_limit(root),
        container_memory_bytes=memory_limit(root),
    )


def _fields(block: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in block.splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, _, value in pairs}


def _counted(cores: int | None) -> int | Missing:
    return cores or _unread("the system does not tell cores from threads")


def _unread(detail: str) -> Missing:
    return Missing(missing=MissingReason.NO_SENSOR, detail=detail)


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip() or None
    except OSError:
        return None
