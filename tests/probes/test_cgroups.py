"""Container limits as cgroup v1 and v2 write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.cgroups import cpu_limit, memory_limit, own_path, quota_v1, quota_v2, size
from probes.evidence import Missing, MissingReason

V1 = "9:name=systemd:/\n4:memory:/pod/box\n2:cpu,cpuacct:/pod/box\n0::/\n"


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("text", "cores"), [("150000 100000\n", 1.5), ("max 100000\n", None), ("", None), ("100000 0", None), ("max", None)]
)
def test_cpu_max(text: str, cores: float | None) -> None:
    assert quota_v2(text) == cores


def test_a_negative_quota_is_no_limit() -> None:
    assert quota_v1("-1\n", "100000\n") is None
    assert quota_v1("50000\n", "100000\n") == 0.5


@pytest.mark.parametrize(("text", "limit"), [("max\n", None), ("9223372036854771712\n", None), ("4096\n", 4096)])
def test_memory_sizes(text: str, limit: int | None) -> None:
    assert size(text) == limit


def test_controllers_share_a_hierarchy_in_v1() -> None:
    assert own_path(V1, "cpu") == "/pod/box"
    assert own_path(V1, "memory") == "/pod/box"
    assert own_path(V1, "") == "/"
    assert own_path(V1, "pids") is None


def test_the_tightest_limit_of_the_hierarchy_holds(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        {
            "proc/self/cgroup": "0::/slice/box\n",
            "sys/fs/cgroup/cgroup.controllers": "cpu memory",
            "sys/fs/cgroup/slice/cpu.max": "200000 100000",
            "sys/fs/cgroup/slice/box/cpu.max": "max 100000",
            "sys/fs/cgroup/slice/memory.max": "max",
            "sys/fs/cgroup/slice/box/memory.max": "1073741824",
        },
    )
    assert cpu_limit(root) == 2.0
    assert memory_limit(root) == 2**30


def test_version_1_limits(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        {
            "proc/self/cgroup": V1,
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            "sys/fs/cgroup/cpu/pod/box/cpu.cfs_quota_us": "300000",
            "sys/fs/cgroup/cpu/pod/box/cpu.cfs_period_us": "100000",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
            "sys/fs/cgroup/memory/pod/memory.limit_in_bytes": "2147483648",
        },
    )
    assert cpu_limit(root) == 3.0
    assert memory_limit(root) == 2**31


def test_a_path_of_the_host_that_the_container_cannot_see_falls_back_to_the_mount(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        {"proc/self/cgroup": "4:memory:/docker/0123abcd\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "1048576"},
    )
    assert memory_limit(root) == 2**20


def test_no_limit_and_no_cgroups_are_two_reasons(tmp_path: Path) -> None:
    assert cpu_limit(tmp_path) == Missing(missing=MissingReason.NOT_APPLICABLE, detail="no cgroups here")
    tree(tmp_path, {"sys/fs/cgroup/cgroup.controllers": ""})
    assert memory_limit(tmp_path) == Missing(missing=MissingReason.NOT_CONFIGURED, detail="no memory limit is set (cgroup v2)")
