"""Kubernetes manifests: the container that serves, the words and variables it gets, the files mounted into it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from probes.declared.complaint import refuse
from probes.declared.launch import Launch, Word, expanded
from probes.declared.starts import of_words
from probes.declared.yamltree import Tree
from probes.fleet import RuntimeName

_TEMPLATED: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job"})
MAX_OBJECTS: Final = 500


@dataclass(frozen=True, kw_only=True)
class Served:
    """What one container is given. `files` are texts of ConfigMaps that its pod mounts, by key."""

    launch: Launch | None
    files: Mapping[str, Tree] = field(default_factory=dict)


def is_manifest(documents: Sequence[Tree]) -> bool:
    """Tell manifests by the two fields that each of them has."""
    return any(not tree.get("apiVersion").absent and not tree.get("kind").absent for tree in documents if tree.is_mapping)


def served(documents: Sequence[Tree], name: str, container: str, runtime: RuntimeName) -> Served:
    """Find the container that runs the runtime, or the one called `container`.

    Raises:
        InputError: there is none, or more than one and no name to choose by.
    """
    objects = list(_objects(documents))
    maps = {tree.get("metadata", "name").text: tree for tree in objects if tree.get("kind").text == "ConfigMap"}
    pods = [pod for tree in objects if (pod := _pod(tree)) is not None]
    if not pods and maps:
        # ConfigMaps alone: what they hold is for some pod that is described elsewhere.
        return Served(launch=None, files=_data(maps.values()))
    choices = [(pod, one) for pod in pods for one in pod.get("containers").each()]
    named = [pair for pair in choices if pair[1].get("name").text == container] if container else choices
    read = [(pod, one, _launch(one, maps)) for pod, one in named]
    found = read if container else [(p, c, launch) for p, c, launch in read if of_words(launch, runtime) is not None]
    if not found and len(read) == 1:
        found = read
    if len(found) != 1:
        names = ", ".join(sorted({one.get("name").text for _, one in choices})) or "none"
        told = f"holds {len(found)} containers that may run {runtime}" if found else f"holds no container that runs {runtime}"
        raise refuse(name, told, f"`container` in the inventory, one of: {names}")
    pod, _, launch = found[0]
    started = of_words(launch, runtime)
    if started is None and launch.words and not container:
        raise refuse(launch.where, f"runs something else than {runtime}", f"a container that runs {runtime}")
    mounted = [maps[one] for one in _mounted(pod) if one in maps]
    return Served(launch=None if started is None else replace(started, where=launch.where), files=_data(mounted))


def _objects(documents: Sequence[Tree]) -> Iterator[Tree]:
    for tree in documents[:MAX_OBJECTS]:
        if tree.get("kind").text == "List":
            yield from tree.get("items").each()
        else:
            yield tree


def _pod(tree: Tree) -> Tree | None:
    kind = tree.get("kind").text
    if kind == "Pod":
        return tree.get("spec")
    if kind == "CronJob":
        return tree.get("spec", "jobTemplate", "spec", "template", "spec")
    return tree.get("spec", "template", "spec") if kind in _TEMPLATED else None


def _launch(container: Tree, maps: Mapping[str, Tree]) -> Launch:
    words = [_word(item) for key in ("command", "args") for item in container.get(key).each()]
    environment: dict[str, Word] = {}
    partial: list[str] = []
    for source in container.get("envFrom").each():
        prefix, reference = source.get("prefix").text, source.get("configMapRef", "name").text
        if reference in maps:
            pairs = maps[reference].get("data").items()
            environment |= {prefix + key: Word(text=value.text, where=value.place) for key, value in pairs if value.is_scalar}
        elif reference:
            partial.append(f"ConfigMap {reference}")
        # What a secret holds is nobody's business here, and no setting of the seven is kept in one.
    for item in container.get("env").each():
        key, value, held_by = item.get("name").text, item.get("value"), item.get("valueFrom", "configMapKeyRef")
        if value.is_scalar:
            environment[key] = _word(value)
        elif not held_by.absent:
            held = maps.get(held_by.get("name").text)
            found = held.get("data", held_by.get("key").text) if held is not None else None
            if found is not None and found.is_scalar:
                environment[key] = Word(text=found.text, where=found.place)
            else:
                environment[key] = Word(text="", where=item.place, open_to=f"ConfigMap {held_by.get('name').text}")
        elif not item.get("valueFrom").absent:
            environment[key] = Word(text="", where=item.place, open_to="a reference to the cluster")
    launch = Launch(
        words=tuple(words),
        environment=environment,
        image=container.get("image").text,
        overridden=not container.get("command").absent,
        where=container.place,
        partial=tuple(partial),
    )
    return expanded(launch)


def _word(tree: Tree) -> Word:
    return Word(text=tree.text, where=tree.place)


def _mounted(pod: Tree) -> Iterator[str]:
    """Name the ConfigMaps that the pod mounts as files."""
    for volume in pod.get("volumes").each():
        if reference := volume.get("configMap", "name").text:
            yield reference
        for source in volume.get("projected", "sources").each():
            if reference := source.get("configMap", "name").text:
                yield reference


def _data(maps: Iterable[Tree]) -> dict[str, Tree]:
    found: dict[str, Tree] = {}
    for tree in maps:
        found |= {key: value for key, value in tree.get("data").items() if value.is_scalar}
    return found
