"""Which processes of this machine hold a port, and whether they are the server or only lead to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import psutil

from probes.evidence import Missing
from probes.sensors.track import no_sensor

# They hold a port and hand on what comes in: the first to another machine, the second to a process that holds no port here.
_TUNNELS: Final = frozenset(
    {"ssh", "sshd", "sshd-session", "autossh", "kubectl", "cloudflared", "tailscaled", "stunnel", "stunnel4", "ngrok"}
)
_RELAYS: Final = frozenset(
    {"docker-proxy", "rootlessport", "rootlesskit", "slirp4netns", "pasta", "com.docker.backend", "gvproxy", "wslrelay.exe"}
    | {"nginx", "haproxy", "envoy", "caddy", "traefik", "socat", "httpd", "apache2"}
)


@dataclass(frozen=True, kw_only=True)
class Listener:
    """The processes behind a port, without those that they started themselves.

    `elsewhere` says that they only lead to another machine; `why` says why there are none to be looked at.
    """

    pids: tuple[int, ...] = ()
    elsewhere: bool = False
    why: Missing | None = None

    def members(self) -> list[psutil.Process]:
        """List the processes with all their descendants as they are now; empty once they are gone."""
        found: dict[int, psutil.Process] = {}
        for pid in self.pids:
            try:
                root = psutil.Process(pid)
                found |= {one.pid: one for one in (root, *root.children(recursive=True))}
            except psutil.Error:
                continue
        return list(found.values())


def find_listener(host: str, port: int) -> Listener:
    """Find who listens on a port of this machine; `host` is a numeric address of it."""
    try:
        found = psutil.net_connections(kind="tcp")
    except (psutil.Error, OSError) as exc:
        return Listener(why=no_sensor(f"the system does not tell who listens on port {port}: {exc or type(exc).__name__}"))
    listening = [
        (one.laddr.ip, one.pid) for one in found if one.status == psutil.CONN_LISTEN and one.laddr and one.laddr.port == port
    ]
    chosen = [pid for address, pid in listening if address == host] or [pid for _, pid in listening]
    pids = sorted({pid for pid in chosen if pid is not None})
    if not pids:
        words = "belongs to another user's process, or to one in a container" if chosen else "has no listener on this machine"
        return Listener(why=no_sensor(f"port {port} {words}, which only root is shown"))
    return judge(port, _roots(pids, port))


def judge(port: int, processes: Sequence[psutil.Process]) -> Listener:
    """Tell a server from a process that only leads to one, by the name of its program."""
    for process in processes:
        try:
            name = process.name()
        except psutil.Error:
            continue
        if name in _TUNNELS:
            words = f"port {port} is held by {name}, which leads to another machine"
            return Listener(elsewhere=True, why=no_sensor(words))
        if name in _RELAYS:
            return Listener(
                why=no_sensor(f"port {port} is held by {name}, which hands requests on to a process not known here")
            )
    return Listener(pids=tuple(process.pid for process in processes))


def _roots(pids: Sequence[int], port: int) -> list[psutil.Process]:
    """Go up from a process to the one that shares its socket with it: servers fork, and psutil names one process a socket."""
    roots: dict[int, psutil.Process] = {}
    for pid in pids:
        try:
            process = psutil.Process(pid)
            above = [parent for parent in process.parents() if _listens(parent, port)]
        except psutil.Error:
            continue
        root = above[-1] if above else process
        roots[root.pid] = root
    return list(roots.values())


def _listens(process: psutil.Process, port: int) -> bool:
    try:
        held = process.net_connections(kind="tcp")
    except psutil.Error:
        return False
    return any(one.status == psutil.CONN_LISTEN and one.laddr and one.laddr.port == port for one in held)
