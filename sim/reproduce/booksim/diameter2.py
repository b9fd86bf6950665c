"""What the reference on networks of diameter 2 has beside its configurations: graphs, permutations, VCs by hop.

Its simulator is the BookSim of PolarFly's authors. ``networks.json`` and ``perms.json`` lie beside the folder of
configurations. Cases whose first word ends in ``h`` (``pf5h_min_uniform_p1``) take the VC of their hop.
"""

import json
import re
from pathlib import Path
from typing import Any

from hopforge.model.errors import UserError
from hopforge.model.input_file import read_input_text
from hopforge.model.output.results import write_text
from hopforge.sim.booksim.graphs import Graph
from hopforge.sim.booksim.supplement import Supplement

_CASE = re.compile(r"(?P<network>[a-z]+\d+)(?P<kind>[a-z]?)_")


class SupplementError(UserError, ValueError):
    """Graphs or permutations that cannot be used: names the file."""


def supplement(configs: Path, case: str, traffic: str, folder: Path) -> Supplement:
    """Return what belongs to a case; its network files are written below `folder`.

    Raises
    ------
    SupplementError
        ``networks.json`` or ``perms.json`` are there and hold something else.
    """
    networks, word = configs.parent / "networks.json", _CASE.match(case)
    if word is None or not networks.is_file():
        return Supplement()
    try:
        for name, network in _read(networks).items():
            terminals = int(network["terminals_per_router"])
            routers = int(network["routers"])
            graph = Graph(routers, [router for router in range(routers) for _ in range(terminals)])
            for a, b in network["edges"]:
                graph.link(int(a), int(b))
            write_text(folder / "net" / f"{name}_p{terminals}.anynet", graph.text(None))
        goals = _read(configs.parent / "perms.json").get(f"{word['network']}_{traffic}")
        permutation = None if goals is None else tuple(map(int, goals))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise SupplementError(f"{networks.parent}: networks.json or perms.json: {reason}") from error
    return Supplement(folder, permutation, vc_by_hop=word["kind"] == "h")


def _read(path: Path) -> Any:
    return json.loads(read_input_text(path)) if path.is_file() else {}
