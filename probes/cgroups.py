"""Limits that a container sets on CPU time and memory, for cgroup v1 and v2."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from probes.evidence import Missing, MissingReason

# An unset limit of cgroup v1 reads as LONG_MAX rounded down to pages.
_UNLIMITED_FROM = 2**60


def cpu_limit(root: Path) -> float | Missing:
    """Read how many cores' worth of time this process may use: the tightest limit up the hierarchy."""
    if not _mounted(root):
        return _no_cgroups()
    if _unified(root):
        limits = [quota_v2(text) for text in _texts(root, "", "cpu.max")]
    else:
        quotas = _texts(root, "cpu", "cpu.cfs_quota_us")
        periods = _texts(root, "cpu", "cpu.cfs_period_us")
        limits = [quota_v1(quota, period) for quota, period in zip(quotas, periods, strict=False)]
    return min((limit for limit in limits if limit is not None), default=_unset("CPU", root))


def memory_limit(root: Path) -> int | Missing:
    """Read how many bytes this process may use: the tightest limit up the hierarchy."""
    if not _mounted(root):
        return _no_cgroups()
    names = ("", "memory.max") if _unified(root) else ("memory", "memory.limit_in_bytes")
    limits = [size(text) for text in _texts(root, *names)]
    return min((limit for limit in limits if limit is not None), default=_unset("memory", root))


def own_path(membership: str, controller: str) -> str | None:
    """Find this process's group in the text of /proc/self/cgroup; controller '' is the unified hierarchy."""
    for line in membership.splitlines():
        fields = line.split(":", 2)
        if len(fields) == 3 and controller in fields[1].split(","):
            return fields[2]
    return None


def quota_v2(text: str) -> float | None:
    """Read cpu.max: '150000 100000' is 1.5 cores, 'max 100000' no limit."""
    quota, _, period = text.strip().partition(" ")
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() and int(period) else None


def quota_v1(quota: str, period: str) -> float | None:
    """Read cpu.cfs_quota_us and cpu.cfs_period_us; a quota of -1 is no limit."""
    return quota_v2(f"{quota.strip()} {period.strip()}")


def size(text: str) -> int | None:
    """Read memory.max or memory.limit_in_bytes; 'max' and v1's largest number are no limit."""
    text = text.strip()
    return int(text) if text.isdigit() and int(text) < _UNLIMITED_FROM else None


def _texts(root: Path, controller: str, name: str) -> list[str]:
    return list(_read(folder / name for folder in _folders(root, controller)))


def _folders(root: Path, controller: str) -> Iterator[Path]:
    """Walk from the mount down to this process's own group.

    In a container without a cgroup namespace the path names the host's hierarchy, of which only
    the part below the mount is visible; folders that are not there are passed over by the reader.
    """
    mount = root / "sys/fs/cgroup" / controller
    yield mount
    try:
        path = own_path((root / "proc/self/cgroup").read_text(), controller)
    except OSError:
        return
    here = mount
    for part in PurePosixPath(path or "/").parts[1:]:
        here /= part
        yield here


def _read(paths: Iterator[Path]) -> Iterator[str]:
    for path in paths:
        try:
            yield path.read_text()
        except OSError:
            continue


def _mounted(root: Path) -> bool:
    return (root / "sys/fs/cgroup").is_dir()


def _unified(root: Path) -> bool:
    return (root / "sys/fs/cgroup/cgroup.controllers").is_file()


def _no_cgroups() -> Missing:
    return Missing(missing=MissingReason.NOT_APPLICABLE, detail="no cgroups here")


def _unset(what: str, root: Path) -> Missing:
    version = 2 if _unified(root) else 1
    return Missing(missing=MissingReason.NOT_CONFIGURED, detail=f"no {what} limit is set (cgroup v{version})")
