"""Networks of BookSim 2 that have no kind of their own here, as its own network files (``router A node B router C 2``).

Routers and terminals have BookSim's numbers.
"""

from dataclasses import dataclass, field


@dataclass
class Graph:
    """A network: the router of every terminal, and links with their latency in cycles.

    Attributes
    ----------
    routers : int
        How many.
    home : list of int
        Router of terminal 0, 1, …
    links : dict
        (from router, to router) → cycles.
    """

    routers: int
    home: list[int]
    links: dict[tuple[int, int], int] = field(default_factory=dict)

    def link(self, a: int, b: int, cycles: int = 1) -> None:
        """Link two routers in both directions."""
        self.links[a, b] = self.links[b, a] = cycles

    def text(self, title: str | None) -> str:
        """Return the network file; without a title it is one that BookSim reads, too, which knows no comments."""
        hosts: list[list[int]] = [[] for _ in range(self.routers)]
        for host, router in enumerate(self.home):
            hosts[router].append(host)
        ends: list[list[tuple[int, int]]] = [[] for _ in range(self.routers)]
        for (here, there), cycles in sorted(self.links.items()):
            ends[here].append((there, cycles))
        lines = [] if title is None else [f"# {title}"]
        for router in range(self.routers):
            words = [f"router {router}", *(f"node {host}" for host in hosts[router])]
            words += [f"router {other} {cycles}" for other, cycles in ends[router]]
            lines.append(" ".join(words))
        return "\n".join(lines) + "\n"


def tiled_homes(routers: int, columns: int, across: int, down: int) -> list[int] | None:
    """Router of every terminal of a grid of `columns` routers a row, each with a tile of terminals; None: no grid.

    Terminal t stands in column t mod (columns · across) and row t div (columns · across).
    """
    home = [-1] * (routers * across * down)
    for router in range(routers):
        top, left = router // columns * down, router % columns * across
        for terminal in ((top + y) * columns * across + left + x for y in range(down) for x in range(across)):
            if terminal >= len(home) or home[terminal] >= 0:
                return None
            home[terminal] = router
    return home


def flattened_butterfly(k: int, n: int, home: list[int], columns: int, across: int, down: int, *, far: bool) -> Graph:
    """Link routers that differ in one of n digits of base k; `far`: by their distance on the grid of terminals."""
    graph = Graph(k**n, home)
    for router in range(k**n):
        for d in range(n):
            for other in range(router + k**d, (router // k ** (d + 1) + 1) * k ** (d + 1), k**d):
                sideways = abs(router % columns - other % columns)
                length = across * sideways + down * abs(router // columns - other // columns)
                graph.link(router, other, length if far else 1)
    return graph


def concentrated_mesh(k: int, home: list[int], *, express: bool, cycles: tuple[int, int]) -> Graph:
    """Mesh of k by k routers; `express` links join border routers k/2 further on the same side.

    `cycles`: latency of a link of the mesh and of an express link.
    """
    graph = Graph(k * k, home)
    near, far = cycles
    for y in range(k):
        for x in range(k - 1):
            graph.link(y * k + x, y * k + x + 1, near)
            graph.link(x * k + y, (x + 1) * k + y, near)
    for i in range(k // 2 if express else 0):
        for side in (0, k - 1):
            graph.link(side * k + i, side * k + i + k // 2, far)
            graph.link(i * k + side, (i + k // 2) * k + side, far)
    return graph


def quad_tree() -> Graph:
    """Tree of 1, 4 and 16 routers; four terminals at each leaf, root first."""
    graph = Graph(21, [5 + terminal // 4 for terminal in range(64)])
    for child in range(4):
        graph.link(0, 1 + child)
        for leaf in range(4):
            graph.link(1 + child, 5 + 4 * child + leaf)
    return graph


def tapered_tree() -> Graph:
    """Four roots, eight routers in the middle, 16 leaves of four terminals; a leaf has two links up."""
    graph = Graph(28, [12 + terminal // 4 for terminal in range(64)])
    for middle in range(8):
        for root in range(4):
            graph.link(root, 4 + middle)
        for leaf in range(4):
            graph.link(4 + middle, 12 + 4 * (middle // 2) + leaf)
    return graph
