"""Network files of ``topology = anynet`` as BookSim 2 reads them.

Unlike in our own reader (`model.topology.graph_file`), a latency holds in one direction only: the way back has that of
the other router's line, or 1 cycle. A link that is named again has 1 cycle again. Links to nodes have none: BookSim
keeps a latency of theirs as that of the link to the router of the node's number, which it makes if there is none.
"""

from collections.abc import Iterator
from pathlib import Path

from hopforge.model.input_file import read_input_text
from hopforge.sim.booksim.grammar import BooksimError
from hopforge.sim.booksim.graphs import Graph

_LARGEST_MIB = 64
_MOST = 1 << 20


def read_network(path: Path) -> Graph:
    """Read a network file.

    Raises
    ------
    BooksimError
        It cannot be read, or a line is wrong: file, line and word.
    """
    found = _Found()
    for where, words in _lines(path):
        if words[0] not in ("router", "node"):
            raise BooksimError(f"{where}: expected router or node, not {words[0]!r}")
        head = _number(where, words, 1, words[0])
        place = 2
        while place < len(words):
            kind = words[place]
            if kind not in ("router", "node"):
                raise BooksimError(f"{where}: expected router or node, not {kind!r}")
            body = _number(where, words, place + 1, kind)
            place += 2
            cycles = 1
            if place < len(words) and words[place] not in ("router", "node"):
                if "node" in (words[0], kind):
                    node = head if words[0] == "node" else body
                    raise BooksimError(
                        f"{where}: latency {words[place]} of the link to node {node}; leave it out, also 1: BookSim "
                        "takes it for that of another link"
                    )
                cycles = _number(where, words, place, "latency", least=1)
                place += 1
            found.join(where, words[0], head, kind, body, cycles)
    return found.graph(path)


def _lines(path: Path) -> Iterator[tuple[str, list[str]]]:
    try:
        text = read_input_text(path, _LARGEST_MIB)
    except UnicodeDecodeError as error:
        raise BooksimError(f"network_file {path}: not UTF-8 text (byte {error.start})") from error
    except OSError as error:
        raise BooksimError(f"network_file {path}: {error.strerror or error}") from error
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if words:
            yield f"{path}:{number}", words


def _number(where: str, words: list[str], place: int, what: str, least: int = 0) -> int:
    word = words[place] if place < len(words) else ""
    if not (word.isascii() and word.isdigit() and len(word) < 9 and least <= int(word) < _MOST):
        raise BooksimError(f"{where}: expected the number of a {what} from {least} to {_MOST - 1}, not {word!r}")
    return int(word)


class _Found:
    def __init__(self) -> None:
        self.home: dict[int, int] = {}
        self.links: dict[tuple[int, int], int] = {}
        self.routers: set[int] = set()

    def join(self, where: str, head_kind: str, head: int, kind: str, body: int, cycles: int) -> None:
        if head_kind == kind == "node":
            raise BooksimError(f"{where}: node {head} is linked to node {body}")
        if head_kind == kind:
            if head == body:
                raise BooksimError(f"{where}: router {head} is linked to itself")
            self.routers |= {head, body}
            self.links[head, body] = cycles
            self.links.setdefault((body, head), 1)
            return
        router, node = (head, body) if head_kind == "router" else (body, head)
        if self.home.setdefault(node, router) != router:
            raise BooksimError(f"{where}: node {node} is at router {router} and at router {self.home[node]}")
        self.routers.add(router)

    def graph(self, path: Path) -> Graph:
        for what, numbers in (("node", set(self.home)), ("router", self.routers)):
            if numbers != set(range(len(numbers))):
                missing = next(n for n in range(len(numbers)) if n not in numbers)
                raise BooksimError(f"network_file {path}: {what} {missing} is missing; {what}s are numbered from 0")
        if not self.home:
            raise BooksimError(f"network_file {path}: holds no node")
        if not self.links:
            raise BooksimError(f"network_file {path}: holds no link between routers")
        return Graph(len(self.routers), [self.home[node] for node in range(len(self.home))], self.links)
