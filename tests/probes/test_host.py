"""Host facts from the text of procfs and sysfs, as kernels of several machines write it."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.evidence import Missing, MissingReason
from probes.host import cpu_name, cpuinfo, fingerprint, huge_pages, isa, meminfo, physical_cores, read_host

EPYC = """\
processor\t: 0
model name\t: AMD EPYC
physical id\t: 0
core id\t\t: 0
flags\t\t: fpu sse4_2 avx f16c fma avx2 umip vaes

processor\t: 1
model name\t: AMD EPYC
physical id\t: 0
core id\t\t: 1
flags\t\t: fpu sse4_2 avx f16c fma avx2 umip vaes

"""
# Two sockets of two cores with two threads each; the second line of flags lacks AMX, as a mixed virtual machine may.
XEON = "\n".join(
    f"processor: {n}\nmodel name: Intel(R) Xeon(R)  Platinum 8480+\nphysical id: {n // 4}\ncore id: {n // 2 % 2}\n"
    f"flags: avx2 avx512f avx512_vnni {'amx_tile amx_int8' if n else ''}\n"
    for n in range(8)
)
CORTEX = """\
processor\t: 0
BogoMIPS\t: 50.00
Features\t: fp asimd evtstrm aes asimdhp asimddp i8mm bf16
CPU implementer\t: 0x41
CPU part\t: 0xd0c

Hardware\t: Board
Serial\t\t: 0000000012345678
Model\t\t: Example board
"""
MEMINFO = """\
MemTotal:       24684092 kB
SwapTotal:             0 kB
AnonHugePages:    103 kB
HugePages_Total:      64
Hugepagesize:       2048 kB
Active(anon):     5 kB
"""


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    return tree(
        tmp_path,
        {
            "proc/cpuinfo": EPYC,
            "proc/meminfo": MEMINFO,
            "proc/sys/kernel/osrelease": "6.18.44\n",
            "proc/self/cgroup": "0::/\n",
            "etc/os-release": 'NAME="Debian GNU/Linux"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
            "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "powersave\n",
            "sys/devices/system/node/node0/cpulist": "0-1\n",
            "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
            "sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
            "sys/fs/cgroup/cpu.max": "150000 100000\n",
            "sys/fs/cgroup/memory.max": "8589934592\n",
        },
    )


def test_a_whole_machine(machine: Path) -> None:
    host = read_host(root=machine)
    assert host.model_dump(exclude={"fingerprint", "alias", "driver"}) == {
        "cpu": "AMD EPYC",
        "isa": ("sse4_2", "avx", "f16c", "fma", "avx2"),
        "physical_cores": 2,
        "logical_cores": 2,
        "memory_bytes": 24684092 * 1024,
        "os": "Debian GNU/Linux 12 (bookworm)",
        "kernel": "6.18.44",
        "tuning": {
            "governor": "powersave",
            "huge_pages": "64 of 2048 kB",
            "transparent_huge_pages": "madvise",
            "swap_bytes": 0,
            "numa_nodes": 1,
            "container_cpu_limit": 1.5,
            "container_memory_bytes": 8 * 2**30,
        },
    }
    assert host.driver == Missing(missing=MissingReason.NOT_APPLICABLE, detail="no accelerator on the PCI bus")
    assert host.alias == f"local-{host.fingerprint[:6]}"
    assert read_host("cluster", root=machine).alias == "cluster"


def test_what_cannot_be_read_has_a_reason_and_is_never_zero(tmp_path: Path) -> None:
    host = read_host(root=tmp_path)
    tuning = host.tuning.model_dump()
    assert {name: value["missing"] for name, value in tuning.items()} == {
        "governor": MissingReason.NO_SENSOR,
        "huge_pages": MissingReason.NO_SENSOR,
        "transparent_huge_pages": MissingReason.NO_SENSOR,
        "swap_bytes": MissingReason.NO_SENSOR,
        "numa_nodes": MissingReason.NO_SENSOR,
        "container_cpu_limit": MissingReason.NOT_APPLICABLE,
        "container_memory_bytes": MissingReason.NOT_APPLICABLE,
    }
    assert all(value["detail"] for value in tuning.values())
    assert isinstance(host.memory_bytes, int)
    assert isinstance(host.logical_cores, int)
    assert host.memory_bytes > 2**20
    assert host.logical_cores >= 1


def test_governors_that_differ_are_all_named(machine: Path) -> None:
    tree(machine, {"sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance\n"})
    assert read_host(root=machine).tuning.governor == "performance, powersave"


def test_cores_are_counted_apart_from_threads() -> None:
    processors = cpuinfo(XEON)
    assert (len(processors), physical_cores(processors)) == (8, 4)
    assert cpu_name(processors) == "Intel(R) Xeon(R) Platinum 8480+"


def test_an_instruction_set_counts_only_where_every_core_has_it() -> None:
    assert isa(cpuinfo(XEON)) == ("avx2", "avx512f", "avx512_vnni")


def test_arm_numbers_its_cores_differently_and_the_board_is_no_processor() -> None:
    processors = cpuinfo(CORTEX)
    assert len(processors) == 1
    assert physical_cores(processors) is None
    assert cpu_name(processors) == "ARM implementer 0x41 part 0xd0c"
    assert isa(processors) == ("neon", "neon_fp16", "neon_dotprod", "i8mm", "bf16")


def test_meminfo_is_in_bytes_and_counts_stay_counts() -> None:
    memory = meminfo(MEMINFO)
    assert memory["MemTotal"] == 24684092 * 1024
    assert memory["HugePages_Total"] == 64
    assert huge_pages(memory) == "64 of 2048 kB"
    assert huge_pages({"HugePages_Total": 0, "Hugepagesize": 2**21}) == "0 of 2048 kB"


def test_the_fingerprint_tells_machines_apart_and_ignores_a_kernel_that_keeps_some_memory() -> None:
    base = fingerprint("AMD EPYC", 2, 2, 24 * 2**30, ["Intel GPU 8086:e20b"])
    assert base == fingerprint("AMD EPYC", 2, 2, 24 * 2**30 - 300 * 2**20, ["Intel GPU 8086:e20b"])
    others = [
        fingerprint("AMD EPYC 7763", 2, 2, 24 * 2**30, ["Intel GPU 8086:e20b"]),
        fingerprint("AMD EPYC", 2, 4, 24 * 2**30, ["Intel GPU 8086:e20b"]),
        fingerprint("AMD EPYC", 2, 2, 32 * 2**30, ["Intel GPU 8086:e20b"]),
        fingerprint("AMD EPYC", 2, 2, 24 * 2**30, []),
        fingerprint("AMD EPYC", 2, 2, 24 * 2**30, ["Intel GPU 8086:e20b", "Intel GPU 8086:e20b"]),
    ]
    assert len({base, *others}) == 6


def test_the_fingerprint_needs_no_order_of_cards() -> None:
    assert fingerprint("C", 1, 1, 2**30, ["a", "b"]) == fingerprint("C", 1, 1, 2**30, ["b", "a"])


def test_this_machine_reads_the_same_twice() -> None:
    first, second = read_host(), read_host()
    assert first == second
    assert len(first.fingerprint) == 12
    assert int(first.fingerprint, 16) >= 0
