"""Process groups of Chakra: a JSON file, nodes of metadata, dimensions (docs/definitions/chakra.md)."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hopforge.model.input_file import read_input_text
from hopforge.model.workload.chakra_nodes import METADATA, Node
from hopforge.model.workload.protobuf import WireError
from hopforge.model.workload.schedule import GoalError

Members = tuple[int, ...]
Groups = dict[str, Members]

#: names of the group of all ranks, unless it is told otherwise
EVERYBODY = ("", "0")


class ChakraError(GoalError):
    """Execution traces that cannot be read or run: the message starts with the file, then byte or node."""


def read_groups(path: Path, ranks: int) -> Groups:
    """Read process groups from a JSON file: ``{"1": [0, 1], …}``.

    Raises
    ------
    ChakraError
        It cannot be read, is no such object, or names a rank that is not there or stands twice in a group.
    """
    try:
        found = json.loads(read_input_text(path))
    except OSError as error:
        raise ChakraError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ChakraError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise ChakraError(f"{path}:{error.lineno}: no JSON: {error.msg}") from None
    except (ValueError, RecursionError):
        raise ChakraError(f"{path}: no JSON: a number or a nesting beyond what is read") from None
    if not isinstance(found, dict):
        raise ChakraError(f'{path}: must be an object of groups, {{"1": [0, 1]}}, not {found!r:.40}')
    try:
        return {name: _members(name, members, ranks) for name, members in found.items()}
    except ValueError as error:
        raise ChakraError(f"{path}: {error}") from None


def groups_of(nodes: Iterable[Node], ranks: int) -> Groups:
    """Return the process groups that nodes of metadata tell.

    Raises
    ------
    WireError
        They are none; names the node.
    """
    found: Groups = {}
    for node in nodes:
        if node.kind == METADATA and "pg_name" in node.values:
            try:
                for each in _listed(node.values):
                    name, members = str(each["pg_name"]), each.get("ranks", [])
                    every = not members and each.get("group_size", ranks) == ranks
                    found[name] = tuple(range(ranks)) if every else _members(name, members, ranks)
            except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
                reason = f": {error}" if type(error) is ValueError else ""
                raise WireError(f"node {node.id}: its process groups cannot be read{reason}") from None
    return found


def _listed(values: str) -> list[Mapping[str, Any]]:
    """Return the list of groups in `inputs.values`; producers write it as a text in a list of one."""
    try:
        found = json.loads(values)
    except json.JSONDecodeError:
        start, end = values.find("[{"), values.rfind("}]")
        found = json.loads(values[start : end + 2].replace('\\"', '"')) if 0 <= start < end else None
    while isinstance(found, str) or (isinstance(found, list) and len(found) == 1 and isinstance(found[0], str)):
        found = json.loads(found if isinstance(found, str) else found[0])
    if not isinstance(found, list):
        raise ValueError("no list of groups")
    return found


def _members(name: str, members: Any, ranks: int) -> Members:
    if not isinstance(members, list) or not members:
        raise ValueError(f"process group {name!r:.40} must be a list of ranks, not {members!r:.40}")
    for rank in members:
        if type(rank) is not int or not 0 <= rank < ranks:
            raise ValueError(f"process group {name!r:.40}: {rank!r:.40} is none of the {ranks} ranks")
    if len(set(members)) != len(members):
        raise ValueError(f"process group {name!r:.40} holds a rank twice")
    return tuple(members)


class GroupFinder:
    """Tells who takes part in a collective.

    Parameters
    ----------
    ranks : int
        How many there are.
    dimensions : sequence of int
        Sizes of the network for `involved_dim`, the first one counts fastest; empty: not told.
    shared : dict
        Groups of all ranks.
    """

    def __init__(self, ranks: int, dimensions: Sequence[int], shared: Groups) -> None:
        self._dimensions, self._shared = dimensions, shared
        self._all = tuple(range(ranks))

    def members(self, node: Node, rank: int, own: Groups) -> tuple[str, Members]:
        """Return name and ranks of the group of a collective of `rank`, whose metadata tell the groups `own`.

        Raises
        ------
        WireError
            There is no such group, or the rank is not in it.
        """
        name = node.attributes.get("pg_name", "")
        if isinstance(name, int):
            name = str(name)
        if not isinstance(name, str):
            raise WireError(f"pg_name must be a text, not {name!r:.40}")
        members = self._shared.get(name) or own.get(name)
        if members is None:
            if name not in EVERYBODY:
                raise WireError(f"process group {name!r:.40} is told by no JSON file and no node of metadata")
            return self._by_dimension(node, rank) if not name else (name, self._all)
        if rank not in members:
            raise WireError(f"rank {rank} is not in process group {name!r:.40}")
        return name, members

    def _by_dimension(self, node: Node, rank: int) -> tuple[str, Members]:
        part = node.attributes.get("involved_dim")
        if part is None:
            return "", self._all
        if not isinstance(part, list):
            raise WireError(f"involved_dim must be a list, not {part!r:.40}")
        if all(part):
            return "", self._all
        sizes = self._dimensions
        if len(part) < len(sizes) or not sizes:
            raise WireError(
                f"involved_dim names {len(part)} dimensions, not all take part; workload.dimensions has {len(sizes)}"
            )
        members, place = [0], 1
        for size, takes_part in zip(sizes, part, strict=False):
            own = rank // place % size
            members = [other + place * at for at in (range(size) if takes_part else (own,)) for other in members]
            place *= size
        return "", tuple(sorted(members))
