"""Docker compose files: the service that serves, as far as the file itself tells (compose-spec 05-services)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from probes.declared.complaint import refuse
from probes.declared.launch import Launch, Word, interpolated
from probes.declared.shell import commands
from probes.declared.starts import of_words
from probes.declared.yamltree import Tree
from probes.fleet import RuntimeName

Environment = Mapping[str, Word]


def is_compose(documents: Sequence[Tree]) -> bool:
    """Tell a compose file by its one mapping of services."""
    return len(documents) == 1 and documents[0].get("services").is_mapping and documents[0].get("apiVersion").absent


def launch(
    document: Tree, name: str, service: str, runtime: RuntimeName, env_file: Callable[[str, str], Environment | None]
) -> Launch:
    """Find the service that runs the runtime, or the one called `service`; `env_file` reads a file that one names.

    Raises:
        InputError: there is none, or more than one and no name to choose by.
    """
    services = dict(document.get("services").items())
    if service and service not in services:
        raise refuse(name, f"has no service {service[:60]!r}", f"one of {', '.join(services)}")
    chosen = {service: services[service]} if service else services
    read = {key: _launch(tree, env_file) for key, tree in chosen.items()}
    started = {key: found for key, one in read.items() if (found := of_words(one, runtime)) is not None}
    if len(started) != 1:
        told = f"holds {len(started)} services that run {runtime}" if started else f"holds no service that runs {runtime}"
        raise refuse(name, told, f"`container` in the inventory, one of: {', '.join(services)}")
    (key,) = started
    if not chosen[key].get("extends").absent:
        raise refuse(chosen[key].get("extends").place, "extends another service", "a rendered file: docker compose config")
    return replace(started[key], where=read[key].where)


def _launch(tree: Tree, env_file: Callable[[str, str], Environment | None]) -> Launch:
    entrypoint, command = (tuple(_words(tree.get(key))) for key in ("entrypoint", "command"))
    environment: dict[str, Word] = {}
    partial: list[str] = []
    for path, place in _env_files(tree.get("env_file")):
        found = env_file(path, place)
        if found is None:
            partial.append(f"env_file {path}")
        else:
            environment |= found
    environment |= dict(_environment(tree.get("environment")))
    return Launch(
        words=(*entrypoint, *command),
        environment=environment,
        image=tree.get("image").text,
        overridden=bool(entrypoint),
        where=tree.place,
        partial=tuple(partial),
    )


def _words(tree: Tree) -> Iterator[Word]:
    """Give the words of a list, or of a string that is split as a shell splits it but never expanded by one."""
    if tree.is_sequence:
        yield from (_open(Word(text=item.text, where=item.place)) for item in tree.each())
    elif tree.is_scalar:
        line = tree.line + 1 if tree.is_block else tree.line
        # $NAME is compose's own, and $$ is what is left for a shell in the container.
        kept = tree.text.replace("$", "\x01")
        for part in commands(kept, tree.name, line):
            yield from (_open(replace(word, text=word.text.replace("\x01", "$"))) for word in part.words)


def _open(word: Word) -> Word:
    """Leave open what compose fills in from the environment of whoever starts it."""
    return interpolated(word, lambda _name: None)


def _environment(tree: Tree) -> Iterator[tuple[str, Word]]:
    if tree.is_mapping:
        for key, value in tree.items():
            word = Word(text=value.text, where=value.place, open_to="" if value.is_scalar else f"${key}")
            yield key, _open(word)
    for item in tree.each():
        key, equals, text = item.text.partition("=")
        yield key, _open(Word(text=text, where=item.place, open_to="" if equals else f"${key}"))


def _env_files(tree: Tree) -> Iterator[tuple[str, str]]:
    if tree.is_scalar:
        yield tree.text, tree.place
    for item in tree.each():
        path = item.get("path") if item.is_mapping else item
        if path.text:
            yield path.text, item.place
