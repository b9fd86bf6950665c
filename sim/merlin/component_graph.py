"""Routers, endpoints and links of a JSON file that SST has written (``sst --output-json``)."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hopforge.model.errors import UserError
from hopforge.model.input_file import read_input_text

#: largest file, MiB
LARGEST_MIB = 512
ROUTER = "merlin.hr_router"


class MerlinError(UserError, ValueError):
    """A configuration of SST that cannot be translated: names file, component and key."""


@dataclass(frozen=True)
class Component:
    """A component of SST, or a subcomponent.

    Attributes
    ----------
    name : str
        Its own, or that of the component and its slot.
    type : str
        Library and class, such as ``merlin.hr_router``.
    params : dict of str
        Its parameters, those of its shared sets too.
    slots : dict
        Name of the slot → subcomponent, the first of each slot.
    """

    name: str
    type: str
    params: dict[str, str]
    slots: dict[str, "Component"] = field(default_factory=dict)

    def value(self, key: str, default: str | None = None) -> str | None:
        """Return a parameter, also under its older name with the class before it (``torus.shape``, ``torus:shape``)."""
        name = self.type.rpartition(".")[2]
        for each in (key, f"{name}.{key}", f"{name}:{key}"):
            if each in self.params:
                return self.params[each]
        return default


@dataclass(frozen=True)
class Link:
    """Two ends: component and port; what each adds to the time of flight, as it stands in the file."""

    name: str
    components: tuple[str, str]
    ports: tuple[str, str]
    latencies: tuple[str, str]


@dataclass(frozen=True)
class ComponentGraph:
    """What a file has.

    Attributes
    ----------
    file : Path
        Where it stands.
    components : dict
        Name → component.
    links : list
        All links.
    """

    file: Path
    components: dict[str, Component]
    links: list[Link]

    def refuse(self, where: str, why: str) -> MerlinError:
        """Return the error of a place in the file."""
        return MerlinError(f"{self.file}: {where}: {why}")


def read_graph(path: Path) -> ComponentGraph:
    """Read a file.

    Raises
    ------
    MerlinError
        It cannot be read, is no JSON, or not as SST writes it.
    """
    try:
        data = json.loads(read_input_text(path, LARGEST_MIB))
    except UnicodeDecodeError as error:
        raise MerlinError(f"{path}: not UTF-8 text (byte {error.start})") from error
    except OSError as error:
        raise MerlinError(f"{path}: {error.strerror or error}") from error
    except json.JSONDecodeError as error:
        raise MerlinError(f"{path}:{error.lineno}: not JSON: {error.msg} (column {error.colno})") from error
    except RecursionError as error:
        raise MerlinError(f"{path}: not as SST writes it: lists within lists without an end") from error
    graph = ComponentGraph(path, {}, [])
    if not isinstance(data, dict):
        raise graph.refuse("the file", "must be an object with components and links, as sst --output-json writes it")
    shared = _mapping(graph, data.get("shared_params", data.get("global_params")) or {}, "shared_params")
    for place, entry in enumerate(_entries(graph, data, "components")):
        name = _text(graph, entry, "name", f"components[{place}]")
        if name in graph.components:
            raise graph.refuse(f"component {name}", "stands there twice")
        graph.components[name] = _component(graph, entry, f"component {name}", name, shared)
    for place, entry in enumerate(_entries(graph, data, "links")):
        graph.links.append(_link(graph, entry, place))
    return graph


def _entries(graph: ComponentGraph, data: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    entries = data.get(key)
    if not isinstance(entries, list) or not entries:
        raise graph.refuse(key, "must be a list with something in it")
    for place, entry in enumerate(entries):
        yield _mapping(graph, entry, f"{key}[{place}]")


def _mapping(graph: ComponentGraph, value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise graph.refuse(where, "must be an object")
    return value


def _text(graph: ComponentGraph, entry: Mapping[str, Any], key: str, where: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value:
        raise graph.refuse(where, f"{key} must be a text")
    return value


def _params(graph: ComponentGraph, entry: Mapping[str, Any], where: str, shared: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, Any] = {}
    for name in entry.get("params_shared_sets", entry.get("params_global_sets")) or ():
        if not isinstance(name, str) or name not in shared:
            raise graph.refuse(where, f"params_shared_sets: there are no shared parameters {name}")
        found |= _mapping(graph, shared[name], f"shared_params.{name}")
    found |= _mapping(graph, entry.get("params") or {}, f"{where}, params")
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in found.items()}


def _component(
    graph: ComponentGraph, entry: Mapping[str, Any], where: str, name: str, shared: Mapping[str, Any]
) -> Component:
    found = Component(name, _text(graph, entry, "type", where), _params(graph, entry, where, shared))
    if entry.get("subcomponents"):
        for each in _entries(graph, entry, "subcomponents"):
            slot = _text(graph, each, "slot_name", where)
            inner = f"{where}, slot {slot}"
            found.slots.setdefault(slot, _component(graph, each, inner, f"{name}:{slot}", shared))
    return found


def _link(graph: ComponentGraph, entry: Mapping[str, Any], place: int) -> Link:
    name = _text(graph, entry, "name", f"links[{place}]")
    where = f"link {name}"
    if entry.get("nonlocal") in (True, "true"):
        raise graph.refuse(where, "the other end is in another file: write one file of one rank")
    ends = [_mapping(graph, entry.get(side), f"{where}, {side}") for side in ("left", "right")]
    components, ports, latencies = (
        (_text(graph, ends[0], key, f"{where}, left"), _text(graph, ends[1], key, f"{where}, right"))
        for key in ("component", "port", "latency")
    )
    for component in components:
        if component.partition(":")[0] not in graph.components:
            raise graph.refuse(where, f"there is no component {component}")
    return Link(name, components, ports, latencies)
