"""Options of a server: how they are written on a command line and in the environment, and what they set."""

from __future__ import annotations

import difflib
import math
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from probes.declared.complaint import refuse, shown, usable
from probes.declared.entry import Entry
from probes.declared.launch import Launch, Word
from probes.errors import InputError, Problem
from probes.evidence import Scalar, Technique

_TRUTH: Final = {
    **dict.fromkeys(("true", "1", "on", "yes", "enabled"), True),
    **dict.fromkeys(("false", "0", "off", "no", "disabled"), False),
}
_SCALES: Final = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}
_NAME: Final = re.compile(r"--?[A-Za-z][A-Za-z0-9_.-]{0,48}")


class Takes(StrEnum):
    """What follows an option."""

    WHOLE = "a whole number"
    NUMBER = "a number"
    WORD = "a word"
    TRUTH = "true or false"
    SWITCH = "nothing"
    MAYBE = "a word or nothing"


@dataclass(frozen=True, kw_only=True)
class Option:
    """One option. `off` are the flags that negate a switch; `alone` is what a flag without its word means.

    `environment` are variables that set it, the command line being stronger; `off_environment` unset it.
    """

    control: str
    technique: Technique
    flags: tuple[str, ...]
    takes: Takes
    off: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    off_environment: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()
    alone: str = "on"
    read: Callable[[str, str], Scalar] | None = None
    scaled: bool = False


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a command line and its environment set, the last of each.

    `unread` are names of other options; `others` are those that were wanted as they are; `partial` says that a word
    depends on what is not known here, so that nothing may be said to be left out.
    """

    entries: dict[str, Entry] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    others: Mapping[str, Word] = field(default_factory=dict)
    partial: bool = False


def match(
    options: Sequence[Option],
    words: Sequence[Word],
    environment: Mapping[str, Word],
    *,
    wanted: Iterable[str] = (),
    dashed: bool = True,
) -> Found:
    """Hold words and variables against a table; of an option given twice the last counts.

    `wanted` names further flags whose words are given back unread; `dashed` takes `--a_b` for `--a-b`. No other
    word is kept: it may be a secret.

    Raises:
        InputError: every known option whose value is not one it takes.
    """
    matcher = _Matcher(options, frozenset(wanted), dashed=dashed)
    matcher.take_environment(environment)
    matcher.take_words(words)
    return matcher.found()


class _Matcher:
    """Collects what options say, the environment first so that the command line is stronger."""

    def __init__(self, options: Sequence[Option], wanted: frozenset[str], *, dashed: bool) -> None:
        self._options, self._wanted, self._dashed = options, wanted, dashed
        self._by_flag = {flag: (option, flag in option.off) for option in options for flag in (*option.flags, *option.off)}
        self._entries: dict[str, Entry] = {}
        self._others: dict[str, Word] = {}
        self._unread: list[str] = []
        self._problems: list[Problem] = []
        self._partial = False

    def found(self) -> Found:
        if self._problems:
            raise InputError(self._problems)
        unread = tuple(dict.fromkeys(self._unread))
        return Found(entries=self._entries, unread=unread, others=self._others, partial=self._partial)

    def take_environment(self, environment: Mapping[str, Word]) -> None:
        for option in self._options:
            for name in option.environment:
                if name in environment:
                    self._keep(option, environment[name], name)
            for name in option.off_environment:
                if name in environment:
                    self._keep(option, environment[name], name, off=True)

    def take_words(self, words: Sequence[Word]) -> None:
        rest = deque(words)
        while rest:
            word = rest.popleft()
            if not _is_flag(word):
                self._open(word, "words")
                continue
            name, equals, given = word.text.partition("=")
            flag = name.replace("_", "-") if self._dashed and name.startswith("--") else name
            value = replace(word, text=given) if equals else None
            if flag in self._by_flag:
                self._take(flag, name, word, value, rest)
                continue
            if value is None and rest and not _is_flag(rest[0]):
                value = rest.popleft()
            if flag in self._wanted:
                self._others[flag] = value or replace(word, text="")
            elif _NAME.fullmatch(name):
                self._unread.append(_with_hint(name, flag, self._by_flag))

    def _take(self, flag: str, name: str, word: Word, value: Word | None, rest: deque[Word]) -> None:
        option, off = self._by_flag[flag]
        value = value or _following(option, rest, off=off)
        if value is None and option.takes not in {Takes.SWITCH, Takes.MAYBE} and not off:
            self._problems.append(Problem(place=f"{word.where}: {name}", found="ends the command", expected=option.takes))
            return
        alone = replace(word, text=option.alone if option.takes is Takes.MAYBE else "true")
        # A value that is written beside a negation turns it round: --no-x=false.
        negated = off and not (value is not None and _TRUTH.get(value.text.lower()) is False)
        self._keep(option, value or alone, name, off=negated)

    def _keep(self, option: Option, word: Word, name: str, *, off: bool = False) -> None:
        if self._open(word, name):
            self._entries.pop(option.control, None)
            return
        try:
            value = False if off else _value(option, word, name)
        except InputError as exc:
            self._problems.extend(exc.problems)
            return
        self._entries[option.control] = Entry(technique=option.technique, control=option.control, value=value, where=word.where)

    def _open(self, word: Word, name: str) -> bool:
        """Note a word that depends on something else: from then on nothing is known to be left out."""
        if word.open_to:
            self._partial = True
            self._unread.append(f"{name} (depends on {word.open_to[:60]})")
        return bool(word.open_to)


def defaults(
    options: Sequence[Option], found: Found, launch: Launch, values: Mapping[str, Scalar], of: str
) -> tuple[Entry, ...]:
    """Give the defaults of what a command leaves out, where all of the command is known; `of` says whose they are."""
    if found.partial or launch.partial:
        return ()
    techniques = {option.control: option.technique for option in options}
    return tuple(
        Entry(technique=techniques[control], control=control, value=value, where=launch.where, default_of=of)
        for control, value in values.items()
        if control not in found.entries
    )


def _following(option: Option, rest: deque[Word], *, off: bool) -> Word | None:
    """Take the word after a flag, if it belongs to it."""
    if not rest or off:
        return None
    ahead = rest[0].text
    if option.takes is Takes.SWITCH:
        return rest.popleft() if ahead.lower() in {"true", "false"} else None
    if option.takes is Takes.MAYBE:
        return rest.popleft() if ahead.lower() in {*option.one_of, *_TRUTH} else None
    return rest.popleft()


def _value(option: Option, word: Word, name: str) -> Scalar:
    text, place = word.text.strip(), f"{word.where}: {name}"
    if option.read is not None:
        return option.read(text, place)
    if option.takes in {Takes.SWITCH, Takes.TRUTH}:
        if text.lower() not in _TRUTH:
            raise refuse(place, f"is {shown(text)}", "true or false")
        return _TRUTH[text.lower()]
    if option.takes is Takes.WHOLE:
        return _whole(text, place, scaled=option.scaled)
    if option.takes is Takes.NUMBER:
        return _number(text, place)
    if option.one_of and text.lower() not in option.one_of:
        raise refuse(place, f"is {shown(text)}", f"one of {', '.join(option.one_of)}")
    if not text or not usable(text):
        raise refuse(place, f"is {shown(text)}", "one printable word")
    return text


def _whole(text: str, place: str, *, scaled: bool) -> int:
    number = re.fullmatch(r"([+-]?\d{1,18})([kKmMgG]?)", text, re.ASCII)
    if number is None or (number.group(2) and not scaled):
        raise refuse(place, f"is {shown(text)}", "a whole number")
    return int(number.group(1)) * _SCALES.get(number.group(2), 1)


def _number(text: str, place: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise refuse(place, f"is {shown(text)}", "a number")
    return value


def _is_flag(word: Word) -> bool:
    return re.match(r"--?[A-Za-z]", word.text) is not None


def _with_hint(name: str, flag: str, known: Mapping[str, object]) -> str:
    close = difflib.get_close_matches(flag, known, n=1, cutoff=0.85) if flag.startswith("--") else []
    return f"{name} (close to {close[0]})" if close else name
