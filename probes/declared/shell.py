"""Shell text as far as starting a server goes: quoting, comments, continued lines, variables set in the same file.

Nothing is run or substituted: a word that depends on a command or on a variable of another place stays open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from probes.declared.complaint import refuse
from probes.declared.launch import Word

_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
MAX_WORDS = 20_000


@dataclass
class Command:
    """Words between two separators, after the assignments that stand before them."""

    words: list[Word] = field(default_factory=list)
    environment: dict[str, Word] = field(default_factory=dict)


def commands(text: str, name: str, first_line: int = 1, known: Mapping[str, Word] | None = None) -> tuple[Command, ...]:
    """Split text into commands; `known` are variables that are set already.

    Raises:
        InputError: a quote is left open, or there is no end to the words.
    """
    return tuple(_Lexer(text, name, first_line, dict(known or {})).run())


class _Lexer:
    """One pass over the characters; assignments are remembered on the way."""

    def __init__(self, text: str, name: str, first_line: int, variables: dict[str, Word]) -> None:
        self._text, self._name, self._at, self._line = text, name, 0, first_line
        self._variables = variables
        self._exported = dict(variables)
        self._command = Command()
        self._word: list[str] | None = None
        self._quoted_part, self._open_to, self._word_line = False, "", first_line
        self._here: list[str] = []
        self._count = 0

    def run(self) -> Iterator[Command]:
        while self._at < len(self._text):
            char = self._next()
            if char == "\\":
                self._escape()
            elif char == "'":
                self._single()
            elif char == '"':
                self._double()
            elif char in "$`":
                self._dollar(char, quoted=False)
            elif char == "#" and self._word is None:
                self._skip_comment()
            elif char in " \t":
                self._end_word()
            elif char == "<" and self._peek() == "<":
                self._end_word()
                self._here_document()
            elif char in ";&|\n()":
                yield from self._end_command()
                if char == "\n":
                    self._skip_here_documents()
            else:
                self._add(char)
        yield from self._end_command()

    def _next(self) -> str:
        char = self._text[self._at]
        self._at += 1
        if char == "\n":
            self._line += 1
        return char

    def _peek(self) -> str:
        return self._text[self._at] if self._at < len(self._text) else ""

    def _add(self, text: str, *, quoted: bool = False) -> None:
        if self._word is None:
            self._word, self._open_to, self._word_line, self._quoted_part = [], "", self._line, False
        self._word.append(text)
        self._quoted_part = self._quoted_part or quoted

    def _escape(self) -> None:
        char = self._next() if self._peek() else ""
        if char != "\n":
            self._add(char, quoted=True)

    def _single(self) -> None:
        end, line = self._text.find("'", self._at), self._line
        if end < 0:
            raise refuse(f"{self._name}:{line}", "opens a quote (') that is never closed", "whole quotes")
        self._add("", quoted=True)
        while self._at < end:
            self._add(self._next(), quoted=True)
        self._at = end + 1

    def _double(self) -> None:
        line = self._line
        self._add("", quoted=True)
        while True:
            if not self._peek():
                raise refuse(f"{self._name}:{line}", 'opens a quote (") that is never closed', "whole quotes")
            char = self._next()
            if char == '"':
                return
            if char == "\\" and self._peek() and self._peek() in '"\\$`\n':
                char = self._next()
                if char != "\n":
                    self._add(char, quoted=True)
            elif char in "$`":
                self._dollar(char, quoted=True)
            else:
                self._add(char, quoted=True)

    def _dollar(self, char: str, *, quoted: bool) -> None:
        """Take in `$NAME`, `${...}`, `$(...)` or `` `...` ``."""
        if char == "`" or self._peek() == "(":
            self._substitution("`" if char == "`" else ")")
            return
        if self._peek() == "{":
            end = self._text.find("}", self._at)
            end = len(self._text) if end < 0 else end
            body = "".join(self._next() for _ in range(end - self._at))[1:]
            self._at += 1
        else:
            body = ""
            while self._peek() in _NAME and self._peek():
                body += self._next()
        if not body:
            self._add("$", quoted=quoted)
            return
        name = body[: len(body) - len(body.lstrip("".join(_NAME)))]
        word = self._variables.get(name) if body == name or body[len(name) :].startswith(":-") else None
        if word is None:
            self._add(f"${{{body}}}", quoted=quoted)
            self._open_to = self._open_to or f"${name or body[:40]}"
        else:
            self._splice(word, quoted=quoted)

    def _splice(self, word: Word, *, quoted: bool) -> None:
        """Put a variable's value into the word; outside quotes it falls into words at its spaces."""
        parts = [word.text] if quoted else word.text.split()
        self._add("") if quoted or parts else None
        for index, part in enumerate(parts):
            if index:
                self._end_word()
            self._add(part, quoted=quoted)
            self._open_to = self._open_to or word.open_to

    def _substitution(self, end: str) -> None:
        depth, begin = 0, self._at
        while self._peek():
            char = self._next()
            depth += {"(": 1, ")": -1}.get(char, 0) if end == ")" else 0
            if char == end and depth <= 0:
                break
        self._add(f"$({self._text[begin : begin + 20]}...)")
        self._open_to = self._open_to or "the output of a command"

    def _skip_comment(self) -> None:
        end = self._text.find("\n", self._at)
        self._at = len(self._text) if end < 0 else end

    def _here_document(self) -> None:
        self._at += 1
        while self._peek() and self._peek() in "- \t<":
            self._at += 1
        word = ""
        while self._peek() and not self._peek().isspace() and self._peek() not in ";&|":
            word += self._next()
        self._here.append(word.strip("'\"\\"))

    def _skip_here_documents(self) -> None:
        for end in self._here:
            while self._peek():
                stop = self._text.find("\n", self._at)
                stop = len(self._text) if stop < 0 else stop + 1
                line = self._text[self._at : stop]
                self._line += line.count("\n")
                self._at = stop
                if line.strip() == end:
                    break
        self._here.clear()

    def _end_word(self) -> None:
        if self._word is None:
            return
        text, self._word = "".join(self._word), None
        self._count += 1
        if self._count > MAX_WORDS:
            raise refuse(self._name, f"holds more than {MAX_WORDS} words", "a file that people wrote")
        word = Word(text=text, where=f"{self._name}:{self._word_line}", open_to=self._open_to)
        name, equals, value = text.partition("=")
        plain = bool(equals) and name and not name[0].isdigit() and set(name) <= _NAME
        before = [one.text for one in self._command.words]
        if plain and (not before or before in (["export"], ["env"]) or before[:1] == ["export"]):
            assigned = Word(text=value, where=word.where, open_to=word.open_to)
            self._command.environment[name] = assigned
            if before[:1] != ["env"]:
                self._variables[name] = assigned
            if before[:1] == ["export"]:
                self._exported[name] = assigned
            return
        self._command.words.append(word)

    def _end_command(self) -> Iterator[Command]:
        self._end_word()
        command, self._command = self._command, Command()
        words = [word.text for word in command.words]
        if words[:1] == ["export"]:
            self._exported |= {name: self._variables[name] for name in words[1:] if name in self._variables}
        elif words:
            command.environment = {**self._exported, **command.environment}
            yield command
