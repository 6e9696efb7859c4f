"""A file is there as a whole or not at all, and no other is ever lost for it."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from probes.errors import HostError, InputError
from probes.files import TakenError, ensure_writable, is_stream, read_bounded, read_text, write_atomic, write_new

ROOT = Path(__file__).parents[2]


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """Let no file grow beyond 1 KiB, as on a full disk: making one works, filling it does not.

    Only while it is entered: the limit holds for whatever pytest itself is writing, too.
    """
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def refused(path: Path, most: int = 10) -> str:
    with pytest.raises(InputError) as raised:
        read_text(path, "x.json", most=most, expected="a small file")
    return str(raised.value)


def test_what_is_no_regular_file_is_refused_and_nobody_waits_for_its_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        assert refused(path) == "x.json: is no regular file; expected a small file"
    assert refused(tmp_path / "absent") == "x.json: cannot be read (No such file or directory); expected a readable file"
    assert refused(Path("a\x00b")).startswith("x.json: cannot be read")


def test_a_file_is_read_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    assert read_bounded(path, "x", most=10, expected="") == b"0123456789"
    assert refused(path, most=9) == "x.json: has 10 bytes; expected at most 9: a small file"
    # Its size is told as 0, and it has more.
    assert refused(Path("/proc/self/status"), most=9) == "x.json: has more than 9 bytes; expected a small file"


def test_text_is_utf_8_and_what_is_none_is_told_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xef\xbb\xbfa\r\nb")
    assert read_text(path, "x", most=10, expected="") == "a\r\nb"
    path.write_bytes(b"a\nb\n\xff")
    assert refused(path) == "x.json:3: is not UTF-8; expected text in UTF-8"


@pytest.fixture
def no_links(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)


def test_a_full_disk_is_found_before_anything_is_measured(tmp_path: Path) -> None:
    told = rf"{tmp_path}: cannot be written \(File too large\); expected .* 256 KiB to spare"
    with full_disk(), pytest.raises(HostError, match=told):
        ensure_writable(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up_later_is_told_with_the_file_that_was_lost(tmp_path: Path) -> None:
    with full_disk(), pytest.raises(HostError, match=rf"{tmp_path}/run\.json: cannot be written \(File too large\)"):
        write_new(tmp_path / "run.json", bytes(2048))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_can_be_written_is_left_as_it_was(tmp_path: Path) -> None:
    ensure_writable(tmp_path / "new")
    assert list((tmp_path / "new").iterdir()) == []


def test_a_new_file_never_replaces_another(tmp_path: Path) -> None:
    write_new(tmp_path / "a", b"one")
    with pytest.raises(TakenError, match="never overwritten"):
        write_new(tmp_path / "a", b"two")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"one")]


@pytest.mark.usefixtures("no_links")
def test_the_same_holds_where_there_are_no_links(tmp_path: Path) -> None:
    test_a_new_file_never_replaces_another(tmp_path)


@pytest.mark.usefixtures("no_links")
def test_without_links_a_name_that_was_taken_is_given_back_when_the_content_does_not_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(HostError, match="Input/output error"):
        write_new(tmp_path / "a", b"one")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_would_not_change_is_left_alone(tmp_path: Path) -> None:
    assert write_atomic(tmp_path / "a", b"one")
    before = (tmp_path / "a").stat().st_mtime_ns
    assert not write_atomic(tmp_path / "a", b"one")
    assert (tmp_path / "a").stat().st_mtime_ns == before
    assert write_atomic(tmp_path / "a", b"two")


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(HostError, match="pipe: cannot be written"):  # nobody reads, and nothing waits
        write_atomic(pipe, b"one")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert write_atomic(pipe, b"one")
        assert os.read(reader, 10) == b"one"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="this system has no /dev/full")
def test_a_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    full, null = tmp_path / "full", tmp_path / "null"
    full.symlink_to("/dev/full")
    null.symlink_to("/dev/null")
    with pytest.raises(HostError, match=r"full: cannot be written \(No space left on device\)"):
        write_atomic(full, b"one")
    assert write_atomic(null, b"one")
    assert full.is_char_device()
    assert null.is_char_device()


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="this system has no /proc/self/fd")
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_an_output_that_leads_to_a_file_goes_on_where_it_is(tmp_path: Path, name: str) -> None:
    script = (
        "import sys; from pathlib import Path; from probes.files import write_atomic; print('before', flush=True); "
        "write_atomic(Path(sys.argv[1]), b'content\\n'); print('after')"
    )
    with (tmp_path / "out").open("wb") as out:
        subprocess.run([sys.executable, "-c", script, name], cwd=ROOT, stdout=out, check=True)  # noqa: S603
    assert (tmp_path / "out").read_text(encoding="utf-8") == "before\ncontent\nafter\n"


@pytest.mark.parametrize(
    ("path", "stream"),
    [
        ("/dev/stdout", True),
        ("/proc/self/fd/1", True),
        ("a", False),
        ("/etc/b", False),
        (".", False),
        ("/devices/x", False),
        ("/dev/shm/a", False),  # noqa: S108 - nothing is written there
    ],
)
def test_what_is_written_to_and_never_replaced(path: str, stream: bool) -> None:
    assert is_stream(Path(path)) is stream
