"""Where in a script, a unit or a list of words a server is started."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Final

from probes.declared import llamacpp, ollama, ovms, vllm
from probes.declared.complaint import refuse, usable
from probes.declared.launch import Launch, Word
from probes.declared.shell import Command, commands
from probes.fleet import RuntimeName

PROGRAMS: Final = {
    RuntimeName.OVMS: ovms.PROGRAMS,
    RuntimeName.VLLM: vllm.PROGRAMS,
    RuntimeName.LLAMACPP: llamacpp.PROGRAMS,
    RuntimeName.OLLAMA: ollama.PROGRAMS,
}
# Parts of image names; what such an image runs needs no program among its words.
IMAGES: Final = {
    RuntimeName.OVMS: re.compile(r"(?:^|/)(?:model_server|ovms)\b|openvino/model_server", re.IGNORECASE),
    RuntimeName.VLLM: re.compile(r"vllm", re.IGNORECASE),
    RuntimeName.LLAMACPP: re.compile(r"llama[.-]?(?:cpp|server)", re.IGNORECASE),
    RuntimeName.OLLAMA: re.compile(r"(?:^|/)ollama\b", re.IGNORECASE),
}
# The others of these programs fetch models, talk to a server or measure one.
_SUBCOMMAND: Final = {RuntimeName.VLLM: "serve", RuntimeName.OLLAMA: "serve"}
_MODULES: Final = {RuntimeName.VLLM: vllm.MODULES}
_WRAPPERS: Final = frozenset(
    {"exec", "nohup", "sudo", "time", "env", "numactl", "taskset", "nice", "ionice", "stdbuf", "setsid", "chrt", "timeout",
     "systemd-run", "catchsegv", "tini", "dumb-init"}
)  # fmt: skip
_SHELLS: Final = frozenset({"sh", "bash", "dash", "ash", "zsh"})
_CONTAINERS: Final = frozenset({"docker", "podman", "nerdctl"})
# Flags of `docker run` without a word after them; all others take one.
_BARE: Final = re.compile(
    r"-[ditP]+|--(?:detach|interactive|tty|rm|init|privileged|read-only|publish-all|no-healthcheck|oom-kill-disable"
    r"|quiet|disable-content-trust|sig-proxy)(?:=.*)?"
)


def in_script(text: str, name: str, runtime: RuntimeName, known: Mapping[str, Word] | None = None, line: int = 1) -> Launch:
    """Find the one command of a script that starts the runtime.

    Raises:
        InputError: the script cannot be split, or starts none or several of them.
    """
    found = [launch for command in commands(text, name, line, known) for launch in _of_command(command, runtime)]
    programs = " or ".join(PROGRAMS[runtime])
    if not found:
        others = [other for other in PROGRAMS if other is not runtime and _starts(text, name, other, known)]
        told = f"starts {others[0]}" if others else "starts no server that is known"
        raise refuse(name, told, f"a command that runs {programs}")
    if len(found) > 1:
        places = ", ".join(launch.where.rpartition(":")[2] for launch in found)
        raise refuse(name, f"starts {programs} {len(found)} times (lines {places})", "one command; split the file")
    return found[0]


def of_words(launch: Launch, runtime: RuntimeName) -> Launch | None:
    """Take the runtime's own words out of a container's; None when it runs something else.

    A shell with -c is looked into, and an image of the runtime needs no program.
    """
    words = launch.words
    shell = _shell_text(words)
    if shell is not None:
        found = [one for c in commands(shell.text, shell.where, known=launch.environment) for one in _of_command(c, runtime)]
        if len(found) == 1:
            # Lines inside the text are not lines of the file; the word's own place is.
            inner = tuple(replace(word, where=shell.where) for word in found[0].words)
            return replace(launch, words=inner, environment={**launch.environment, **found[0].environment}, where=shell.where)
        return None
    rest = _arguments(words, runtime)
    if rest is not None:
        return replace(launch, words=rest)
    return launch if not launch.overridden and IMAGES[runtime].search(launch.image) else None


def _starts(text: str, name: str, runtime: RuntimeName, known: Mapping[str, Word] | None) -> bool:
    return any(True for command in commands(text, name, 1, known) for _ in _of_command(command, runtime))


def _of_command(command: Command, runtime: RuntimeName) -> Iterator[Launch]:
    """Give the launch that a command is, if it is one."""
    words = tuple(command.words)
    inner = _container(words)
    if inner is not None:
        started = of_words(inner, runtime)
        if started is not None:
            yield started
        return
    rest = _arguments(words, runtime)
    if rest is not None:
        yield Launch(words=rest, environment=command.environment, where=words[0].where)


def _arguments(words: Sequence[Word], runtime: RuntimeName) -> tuple[Word, ...] | None:
    """Give what follows the runtime's program, past wrappers such as numactl; None when it is not run."""
    at = 0
    while at < len(words):
        base = PurePosixPath(words[at].text.replace("\\", "/")).name
        if base in PROGRAMS[runtime]:
            rest = tuple(words[at + 1 :])
            serves = runtime not in _SUBCOMMAND or (rest and rest[0].text == _SUBCOMMAND[runtime])
            return rest if serves else None
        if re.fullmatch(r"python[\d.]*", base):
            module = words[at + 2].text if len(words) > at + 2 and words[at + 1].text == "-m" else ""
            return tuple(words[at + 3 :]) if module in _MODULES.get(runtime, ()) else None
        # Behind a wrapper come its own options and their values, until a program that is known.
        if at == 0 and base not in _WRAPPERS:
            return None
        at += 1
    return None


def _shell_text(words: Sequence[Word]) -> Word | None:
    """Give the text of `sh -c TEXT`; what follows it are its parameters."""
    if not words or PurePosixPath(words[0].text).name not in _SHELLS:
        return None
    flag = next((n for n, word in enumerate(words) if re.fullmatch(r"-[a-z]*c", word.text)), None)
    return words[flag + 1] if flag is not None and flag + 1 < len(words) else None


def _container(words: Sequence[Word]) -> Launch | None:
    """Read `docker run`: its -e variables, its image, and the words that the image gets."""
    texts = [word.text for word in words]
    at = 1 if texts[:1] == ["sudo"] else 0
    if len(texts) < at + 3 or PurePosixPath(texts[at]).name not in _CONTAINERS or "run" not in texts[at + 1 : at + 3]:
        return None
    at = texts.index("run", at) + 1
    variables: dict[str, Word] = {}
    partial: list[str] = []
    entrypoint: tuple[Word, ...] = ()
    while at < len(words) and texts[at].startswith("-"):
        name, equals, value = texts[at].partition("=")
        if _BARE.fullmatch(texts[at]):
            at += 1
            continue
        if not equals and at + 1 < len(words):
            at += 1
            value = texts[at]
        at += 1
        word = words[at - 1]
        if name in {"-e", "--env"}:
            key, given, content = value.partition("=")
            variables[key] = replace(word, text=content, open_to=word.open_to or ("" if given else f"${key}"))
        elif name == "--env-file":
            partial.append("--env-file")
        elif name == "--entrypoint":
            entrypoint = (replace(word, text=value),)
    if at >= len(words):
        return None
    image = texts[at] if usable(texts[at]) else ""
    rest = (*entrypoint, *words[at + 1 :])
    return Launch(
        words=rest,
        environment=variables,
        image=image,
        overridden=bool(entrypoint),
        where=words[0].where,
        partial=tuple(partial),
    )
