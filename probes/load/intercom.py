"""How a worker and the command talk while the load is on: messages out a few at a time, one word in."""

from __future__ import annotations

import os
import selectors
import sys
from collections.abc import Callable
from io import RawIOBase


class Intercom:
    """Collects messages for the command, and hears it say stop."""

    def __init__(self, tell: Callable[[list[str]], None]) -> None:
        self._tell = tell
        self._messages: list[str] = []
        self._source: RawIOBase | None = None
        self._selector: selectors.BaseSelector | None = None

    def listen(self, source: RawIOBase, selector: selectors.BaseSelector) -> None:
        """Have the selector wake up when `source` says anything or ends; its key has no data."""
        os.set_blocking(source.fileno(), False)
        selector.register(source, selectors.EVENT_READ, None)
        self._source, self._selector = source, selector

    def heard(self) -> bool:
        """Tell whether the command said anything, which means stop; without a command there is nothing to go on for."""
        source, selector = self._source, self._selector
        if source is None or selector is None:
            return False
        said = source.read()
        if said is None:
            return False
        selector.unregister(source)
        self._source = None
        if not said:
            # The command is gone, and nobody would read what is measured from here on.
            sys.exit(1)
        return True

    def sent(self, index: int, at_ns: int) -> None:
        """Note that a request was sent."""
        self._messages.append(f"S {index} {at_ns}")

    def ended(self, index: int, at_ns: int, *, ok: bool) -> None:
        """Note that a request ended."""
        self._messages.append(f"E {index} {at_ns} {int(ok)}")

    def stopping(self, reason: str, words: str) -> None:
        """Say at once why the run has to stop."""
        self._messages.append(f"X {reason} {words}")
        self.flush()

    def flush(self) -> None:
        """Send what was collected."""
        if self._messages:
            self._tell(self._messages)
            self._messages = []
