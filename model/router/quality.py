"""What classes of traffic are due at the outputs of a router or a host (docs/definitions/traffic-classes.md).

Golden: plain Python, one call per cycle.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["ROUNDS_KEPT", "Quality", "Rounds", "SwitchQuality"]

ROUNDS_KEPT = 8
"""Rounds of which a class that could not send keeps its flits, the new one included."""

_MOST = {"priorities": 15, "weights": 255}


@dataclass(frozen=True, kw_only=True)
class Quality:
    """Classes of traffic with virtual channels of their own, and what they are due.

    Parameters
    ----------
    kind : str
        ``strict`` or ``weighted``.
    of_vc : tuple of int
        Class of every virtual channel.
    priorities, weights : tuple of int
        Of every class: 0 to 15, and 1 to 255.
    """

    kind: Literal["strict", "weighted"]
    of_vc: tuple[int, ...]
    priorities: tuple[int, ...]
    weights: tuple[int, ...]

    @property
    def classes(self) -> int:
        """Number of classes."""
        return len(self.priorities)

    def problems(self, vcs: int) -> Iterator[str]:
        """Return what is wrong with it in a router with so many virtual channels."""
        if self.kind not in ("strict", "weighted"):
            yield f"quality.kind must be one of strict, weighted, not {self.kind!r}"
        if len(self.of_vc) != vcs:
            yield f"quality.of_vc must name a class for each of vcs={vcs}, not {len(self.of_vc)}"
        for vc, number in enumerate(self.of_vc):
            if not 0 <= number < self.classes:
                yield f"quality.of_vc[{vc}] must be below the {self.classes} classes, not {number}"
        if len(self.weights) != self.classes:
            yield f"quality.weights must be as many as priorities={self.classes}, not {len(self.weights)}"
        for name, most in _MOST.items():
            least = int(name == "weights")
            for number, value in enumerate(getattr(self, name)):
                if not least <= value <= most:
                    yield f"quality.{name}[{number}] must be in {least} to {most}, not {value}"


class Rounds:
    """Flits that the classes have left at one output or host (weighted)."""

    def __init__(self, weights: Sequence[int]) -> None:
        self.weights = weights
        self.left = list(weights)

    def take(self, number: int) -> None:
        """Take a flit of a class, of a new round if it has none left."""
        if not self.left[number]:
            self.left = [
                min(left + weight, ROUNDS_KEPT * weight) for left, weight in zip(self.left, self.weights, strict=True)
            ]
        self.left[number] -= 1


class SwitchQuality:
    """Which requests for the switch count in a cycle.

    Parameters
    ----------
    quality : Quality
        Of the router.
    ports : int
        Its ports.
    """

    def __init__(self, quality: Quality, ports: int) -> None:
        self.quality, self.ports = quality, ports
        self._rounds = [Rounds(quality.weights) for _ in range(ports)]

    def _level(self, vc: int, output: int) -> int:
        number = self.quality.of_vc[vc]
        if self.quality.kind == "strict":
            return self.quality.priorities[number]
        return int(self._rounds[output].left[number] > 0)

    def due(self, requests: Sequence[Mapping[int, int]]) -> list[dict[int, int]]:
        """Return the requests that count, of those of each input: the output of each VC that requests one."""
        kept = [dict(of_input) for of_input in requests]
        for output in range(self.ports):
            asking = [(i, v) for i, of_input in enumerate(kept) for v, o in of_input.items() if o == output]
            best = max((self._level(v, output) for _, v in asking), default=0)
            for i, v in asking:
                if self._level(v, output) < best:
                    del kept[i][v]
        if self.quality.kind == "strict":
            for of_input in kept:
                best = max((self._level(v, o) for v, o in of_input.items()), default=0)
                for v in [v for v, o in of_input.items() if self._level(v, o) < best]:
                    del of_input[v]
        return kept

    def sent(self, vc: int, output: int) -> None:
        """Note that a VC sends a flit to an output in this cycle."""
        self._rounds[output].take(self.quality.of_vc[vc])
