"""Which collectives of Chakra belong together: the n-th of a group on one rank to the n-th on the others."""

from collections.abc import Sequence

from hopforge.model.config.workload import ChakraWorkload
from hopforge.model.workload.chakra_collectives import BARRIER, BROADCAST, EXPANDED, NAMES, Collective
from hopforge.model.workload.chakra_groups import ChakraError, GroupFinder, Groups, Members
from hopforge.model.workload.chakra_nodes import COLLECTIVE, Node
from hopforge.model.workload.chakra_rank import RankNodes
from hopforge.model.workload.protobuf import WireError
from hopforge.model.workload.schedule import ANY

Found = dict[int, tuple[str, Collective]]


def find_collectives(
    part: RankNodes, own: Groups, finder: GroupFinder, config: ChakraWorkload
) -> Found:
    """Return the collectives of a rank in the order in which it reaches them: place of the node, group, what.

    A broadcast that is replayed is none.

    Raises
    ------
    WireError
        One that is not simulated, or without size or group; names the node.
    """
    found: Found = {}
    for place in part.order():
        node = part.nodes[place]
        if node.kind == COLLECTIVE:
            try:
                each = _collective(node, part.rank, own, finder, config)
            except WireError as error:
                raise WireError(f"node {node.id}: {error}") from None
            if each is not None:
                found[place] = each
    return found


def _collective(
    node: Node, rank: int, own: Groups, finder: GroupFinder, config: ChakraWorkload
) -> tuple[str, Collective] | None:
    kind = node.number("comm_type")
    if kind not in EXPANDED:
        known = ", ".join(NAMES[each] for each in EXPANDED)
        what = "has no comm_type" if kind is None else NAMES[kind] if 0 <= kind < len(NAMES) else f"comm_type {kind}"
        raise WireError(f"{what}: no collective that is simulated ({known})")
    if kind == BROADCAST and config.broadcast == "replay":
        return None
    size = node.number("comm_size")
    if size is None and kind != BARRIER:
        raise WireError(f"{NAMES[kind]} has no comm_size")
    if size is not None and not 0 <= size < 1 << 63:
        raise WireError(f"comm_size must be from 0 to {(1 << 63) - 1}, not {size}")
    name, members = finder.members(node, rank, own)
    return name, Collective(kind, 0 if kind == BARRIER else size or 0, _root(node, kind, members), members)


def _root(node: Node, kind: int, members: Members) -> int:
    """Return the place of the root of a broadcast: rank `comm_src`, else the first of the group."""
    source = node.number("comm_src") if kind == BROADCAST else None
    if source is not None and source not in members:
        raise WireError(f"comm_src {source} is not in its process group")
    return 0 if source is None else members.index(source)


def matched(
    file: str, ranks: Sequence[RankNodes], found: Sequence[Found], config: ChakraWorkload, first_tag: int
) -> list[dict[int, int]]:
    """Give each collective tags of its own, the same on all members.

    Parameters
    ----------
    file : str
        What the names of the files begin with.
    ranks : sequence of RankNodes
        The nodes.
    found : sequence of dict
        Of `find_collectives`, for each rank.
    config : ChakraWorkload
        Algorithms.
    first_tag : int
        The first tag that no message of the traces has.

    Returns
    -------
    list of dict
        Of each rank: place of the node → tag of its first round.

    Raises
    ------
    ChakraError
        Ranks that contradict each other, with their nodes; no more tags.
    """
    calls: dict[tuple[str, Members], dict[int, list[int]]] = {}  # group → rank → places
    for rank, own in enumerate(found):
        for place, (name, each) in own.items():
            calls.setdefault((name, each.members), {}).setdefault(rank, []).append(place)
    tags: list[dict[int, int]] = [{} for _ in ranks]
    tag = first_tag
    for (name, members), by_rank in calls.items():
        _same_count(file, name, members, by_rank, ranks)
        for places in zip(*(by_rank[rank] for rank in members), strict=True):
            each = _agreed(file, members, places, ranks, found)
            for rank, place in zip(members, places, strict=True):
                tags[rank][place] = tag
            tag += each.messages(config)[0].rounds
    if tag > ANY:
        raise ChakraError(f"{file}: messages and rounds of collectives need {tag} tags; there are {ANY}")
    return tags


def _where(file: str, ranks: Sequence[RankNodes], rank: int, place: int) -> str:
    return f"{file}.{rank}.et: node {ranks[rank].nodes[place].id}"


def _group(name: str) -> str:
    return f"process group {name!r:.40}" if name else "all ranks"


def _same_count(
    file: str, name: str, members: Members, by_rank: dict[int, list[int]], ranks: Sequence[RankNodes]
) -> None:
    counts = {rank: len(by_rank.get(rank, ())) for rank in members}
    most, least = max(members, key=lambda rank: counts[rank]), min(members, key=lambda rank: counts[rank])
    if counts[most] > counts[least]:
        at = _where(file, ranks, most, by_rank[most][counts[least]])
        raise ChakraError(
            f"{at}: is collective {counts[least]} (from 0) of {_group(name)} on rank {most}, but rank {least} has only"
            f" {counts[least]}"
        )


def _agreed(
    file: str, members: Members, places: Sequence[int], ranks: Sequence[RankNodes], found: Sequence[Found]
) -> Collective:
    one = found[members[0]][places[0]][1]
    for rank, place in zip(members, places, strict=True):
        other = found[rank][place][1]
        if other != one:
            raise ChakraError(
                f"{_where(file, ranks, rank, place)}: {_words(other)} on rank {rank}, but rank {members[0]} has"
                f" {_words(one)} there (node {ranks[members[0]].nodes[places[0]].id})"
            )
    return one


def _words(found: Collective) -> str:
    size = "" if found.kind == BARRIER else f" of {found.size} bytes"
    root = f" from rank {found.members[found.root]}" if found.kind == BROADCAST else ""
    return f"{NAMES[found.kind]}{size}{root}"
