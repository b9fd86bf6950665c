"""Node reduction: what a switch needs to know of a destination, as the key of its routing cache.

Source: seed 004, chapter 5, as corrected in the specification of the lookup path. Encoded keys and port numbers:
docs/architecture.md. The rules exist three times: `human_keys` says them one at a time as the definition does,
`NodeReduction.keys` over numpy arrays, `key_kernel` inside kernels.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopforge.model.config import Config
from hopforge.model.config.lookup import KEY_FUNCTIONS, KeyMode
from hopforge.model.lookup.csr import MEMBER_HASHES, MODES, UP_CHOICES
from hopforge.model.lookup.human_keys import (
    HumanKey,
    UpChoice,
    arbitrary_key,
    dragonfly_key,
    fat_tree_key,
    mesh_key,
    torus_key,
)
from hopforge.model.lookup.key_kernel import DE_BRUIJN, KIND_BITS, KeyTables
from hopforge.model.lookup.params import MEMBER_BITS
from hopforge.model.numbers.address import AddressFormat
from hopforge.model.numbers.crc import crc_address, crc_addresses, crc_tables
from hopforge.model.numbers.crc_catalogue import DEFAULT_CRC, Crc
from hopforge.model.topology import Topology, build

__all__ = ["MAX_MEMBERS", "MemberHash", "NodeReduction", "Switch"]

MemberHash = Literal["crc", "modulo"]

MAX_MEMBERS = 1 << MEMBER_BITS
_DEFAULT_ADDRESS = AddressFormat()
_KINDS = {
    "mesh": {("L", ""): 0, ("X", "+"): 1, ("X", "-"): 2},
    "torus": {("L", ""): 0, ("X", "+"): 1, ("X", "-"): 2},
    "fat_tree": {("U", ""): 1, ("D", ""): 2},
    "dragonfly": {("T", ""): 0, ("R", ""): 1, ("G", ""): 2},
}


class Switch(NamedTuple):
    """Place of a switch as the registers OWN and LEVEL hold it.

    Attributes
    ----------
    own : int
        Grid: coordinate i at digit i. Fat tree: c_i at digit i. Dragonfly: router at digit 1, group above.
    level : int
        Fat tree: 0 = leaf; else 0.
    """

    own: int
    level: int


@dataclass(frozen=True)
class NodeReduction:
    """The key function of a network, for all of its switches; routers are numbered as in docs/architecture.md.

    Made by `mesh`, `torus`, `fat_tree`, `dragonfly`, `arbitrary`, `of_topology` or `from_config`.

    Parameters
    ----------
    mode : str
        ``arbitrary``, ``mesh``, ``torus``, ``fat_tree`` or ``dragonfly``.
    address : AddressFormat
        Width of addresses and digits.
    radices : tuple of int
        Mesh, torus: one per dimension. Fat tree: k, n + 1 times. Dragonfly: (p, a, g). Arbitrary: empty.
    hosts_per_router : int
        Mesh, torus: with more than 1, digit n of an address is the terminal.
    up_choice : str
        Fat tree: ``d_mod_k`` or ``highest_mismatch``.
    members : int
        Link-aggregation members, 1 to 16.
    member_hash : str
        Member = ``crc`` of the destination, or the destination itself (``modulo``), modulo `members`.
    crc : str or parameters
        The CRC of the member.

    Raises
    ------
    ValueError
        Naming the parameter, its limit and its value.

    Examples
    --------
    >>> torus = NodeReduction.torus((5, 5), address=AddressFormat(24, 3))
    >>> torus.human(router=6, destination=0o41), hex(torus.key(router=6, destination=0o41))
    (('X', 1, '-'), '0x2080001')
    """

    mode: KeyMode | Literal["expression"]
    address: AddressFormat = _DEFAULT_ADDRESS
    radices: tuple[int, ...] = ()
    hosts_per_router: int = 1
    up_choice: UpChoice = "d_mod_k"
    members: int = 1
    member_hash: MemberHash = "crc"
    crc: Crc = DEFAULT_CRC

    def __post_init__(self) -> None:
        for name, known in (("mode", KEY_FUNCTIONS), ("up_choice", UP_CHOICES), ("member_hash", MEMBER_HASHES)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, not {getattr(self, name)!r}")
        if not 1 <= self.members <= MAX_MEMBERS:
            raise ValueError(f"members must be 1 to {MAX_MEMBERS}, not {self.members}")
        if self.hosts_per_router < 1:
            raise ValueError(f"hosts_per_router must be at least 1, not {self.hosts_per_router}")
        if self.mode == "arbitrary":
            return
        if not self.radices:
            raise ValueError(f"radices must not be empty for mode {self.mode}")
        if self.mode == "fat_tree" and len(set(self.radices)) > 1:
            raise ValueError(f"radices must be the same for every digit of a fat tree, not {self.radices}")
        if self.address.chunk_bits > self.value_bits:
            limit = f"width_bits - {MEMBER_BITS + KIND_BITS} = {self.value_bits}"
            raise ValueError(f"chunk_bits must be at most {limit}, not {self.address.chunk_bits}")
        if self.mode == "dragonfly":
            self._check_dragonfly()
        else:
            self.address.check_radices(self._digit_radices)

    def _check_dragonfly(self) -> None:
        if len(self.radices) != 3:
            raise ValueError(f"radices must be (p, a, g) for a dragonfly, not {self.radices}")
        self.address.check_radices(self.radices[:2])
        bits = max(min(self.address.width_bits - 2 * self.address.chunk_bits, self.value_bits), 0)
        if not 1 <= self.radices[2] <= 1 << bits:
            raise ValueError(f"radices[2] must be 1 to {1 << bits} ({bits} bits of a group), not {self.radices[2]}")

    @classmethod
    def mesh(cls, radices: Sequence[int], **rest: Any) -> Self:
        """Return the reduction of a mesh with `radices` routers along each dimension; `rest`: the other parameters."""
        return cls("mesh", radices=tuple(radices), **rest)

    @classmethod
    def torus(cls, radices: Sequence[int], **rest: Any) -> Self:
        """Return the reduction of a torus with `radices` routers along each dimension; `rest`: the other parameters."""
        return cls("torus", radices=tuple(radices), **rest)

    @classmethod
    def fat_tree(cls, k: int, n: int, **rest: Any) -> Self:
        """Return the reduction of a k-ary tree with levels 0 to n; `rest`: the other parameters."""
        return cls("fat_tree", radices=(k,) * (n + 1), **rest)

    @classmethod
    def dragonfly(cls, p: int, a: int, g: int, **rest: Any) -> Self:
        """Return the reduction of a dragonfly of g groups of a routers with p hosts; `rest`: the other parameters."""
        return cls("dragonfly", radices=(p, a, g), **rest)

    @classmethod
    def arbitrary(cls, **rest: Any) -> Self:
        """Return the identity, for any network."""
        return cls("arbitrary", **rest)

    @classmethod
    def of_topology(cls, topology: Topology, address: AddressFormat, **rest: Any) -> Self:
        """Return the reduction for the kind of `topology` (an edge list: arbitrary); `rest`: the other parameters."""
        params = topology.params
        if topology.kind in {"mesh", "torus"}:
            return cls(
                "mesh" if topology.kind == "mesh" else "torus", address=address, radices=tuple(params["radices"]),
                hosts_per_router=params["hosts_per_router"], **rest,
            )  # fmt: skip
        if topology.kind == "fat_tree":
            return cls.fat_tree(params["k"], params["n"], address=address, **rest)
        if topology.kind == "dragonfly":
            return cls.dragonfly(params["p"], params["a"], params["g"], address=address, **rest)
        return cls.arbitrary(address=address, **rest)

    @classmethod
    def from_config(cls, config: Config, topology: Topology | None = None) -> Self:
        """Return the reduction that `config` describes; arbitrary with ``lookup.reduction: false``.

        Also arbitrary where hosts have several addresses, which keys of the network do not know.

        Parameters
        ----------
        config : Config
            The whole file.
        topology : Topology, optional
            Its network, if it is built already.
        """
        lookup = config.lookup
        address = AddressFormat(config.address.width_bits, config.address.chunk_bits)
        rest: dict[str, Any] = {
            "members": lookup.lag.members, "member_hash": lookup.lag.hash, "crc": lookup.cache.crc,
            "up_choice": lookup.up_choice,
        }  # fmt: skip
        if not lookup.reduction or config.lids > 1:
            return cls.arbitrary(address=address, **rest)
        return cls.of_topology(topology or build(config.topology, config.address), address, **rest)

    # --- places and addresses

    @property
    def key_bits(self) -> int:
        """Width of an encoded key."""
        return self.address.width_bits + 4

    @property
    def value_bits(self) -> int:
        """Width of the value field of a reduced key."""
        return self.address.width_bits - MEMBER_BITS - KIND_BITS

    @property
    def dimensions(self) -> int:
        """Digits of a switch: n of a grid or a fat tree, else 0."""
        if self.mode in {"mesh", "torus"}:
            return len(self.radices)
        return len(self.radices) - 1 if self.mode == "fat_tree" else 0

    @property
    def routers(self) -> int:
        """Number of switches; 0 (unknown) for arbitrary."""
        if self.mode in {"mesh", "torus"}:
            return math.prod(self.radices)
        if self.mode == "fat_tree":
            return len(self.radices) * math.prod(self.radices[1:])
        return self.radices[1] * self.radices[2] if self.mode == "dragonfly" else 0

    @property
    def _digit_radices(self) -> tuple[int, ...]:
        """Values of each digit of a host address (not for dragonflies, whose group is no digit)."""
        if self.mode in {"mesh", "torus"} and self.hosts_per_router > 1:
            return (*self.radices, self.hosts_per_router)
        return self.radices

    def switch(self, router: int) -> Switch:
        """Return the place of switch number `router` as the registers hold it.

        Raises
        ------
        ValueError
            If there is no such switch.
        """
        if self.mode == "arbitrary":
            return Switch(0, 0)
        if not 0 <= router < self.routers:
            raise ValueError(f"router must be 0 to {self.routers - 1}, not {router}")
        shift = self.address.chunk_bits
        if self.mode == "dragonfly":
            group, local = divmod(router, self.radices[1])
            return Switch((group << shift | local) << shift, 0)
        radices = self.radices[: self.dimensions]
        level, rest = divmod(router, math.prod(radices))
        own = 0
        for i, radix in enumerate(radices):
            own |= rest % radix << i * shift
            rest //= radix
        return Switch(own, level)

    def switches(self, routers: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the places (own, level) of many switches, as `switch` does for one: two int64 arrays."""
        number = np.asarray(routers, dtype=np.int64)
        if self.mode == "arbitrary":
            return np.zeros_like(number), np.zeros_like(number)
        if ((number < 0) | (number >= self.routers)).any():
            self.switch(int(number[(number < 0) | (number >= self.routers)].flat[0]))
        shift = self.address.chunk_bits
        if self.mode == "dragonfly":
            a = self.radices[1]
            return (number // a << shift | number % a) << shift, np.zeros_like(number)
        radices = self.radices[: self.dimensions]
        own, stride = np.zeros_like(number), 1
        for i, radix in enumerate(radices):
            own |= number // stride % radix << i * shift
            stride *= radix
        return own, number // stride

    def check_destination(self, destination: int) -> None:
        """Check that an address is one of the network.

        Raises
        ------
        ValueError
            Naming the digit that is beyond its radix, or the width.
        """
        if self.mode == "arbitrary":
            self.address.check(destination)
        elif self.mode == "dragonfly":
            self.address.check(destination)
            group = destination >> 2 * self.address.chunk_bits
            self.address.check_network(destination - (group << 2 * self.address.chunk_bits), self.radices[:2])
            if group >= self.radices[2]:
                raise ValueError(
                    f"address {destination:#x} is beyond the network: group must be less than {self.radices[2]},"
                    f" not {group}"
                )
        else:
            self.address.check_network(destination, self._digit_radices)

    def check_destinations(self, destinations: NDArray[np.int64]) -> None:
        """Check many addresses, as `check_destination` does for one."""
        if self.mode == "arbitrary":
            self.address.check_many(destinations)
        elif self.mode == "dragonfly":
            self.address.check_many(destinations)
            shift = 2 * self.address.chunk_bits
            group = destinations >> shift
            self.address.check_network_many(destinations & (1 << shift) - 1, self.radices[:2])
            if (group >= self.radices[2]).any():
                self.check_destination(int(destinations[group >= self.radices[2]].flat[0]))
        else:
            self.address.check_network_many(destinations, self._digit_radices)

    # --- one at a time

    def human(self, router: int, destination: int) -> HumanKey:
        """Return the key of address `destination` at switch `router`, for people (without the member).

        Raises
        ------
        ValueError
            If there is no such switch or the address is beyond the network.
        """
        place = self.switch(router)
        self.check_destination(destination)
        if self.mode == "arbitrary":
            return arbitrary_key(destination)
        if self.mode == "dragonfly":
            shift = self.address.chunk_bits
            terminal, local = self.address.split(destination, 2)
            own = (self.address.digit(place.own, 1), place.own >> 2 * shift)
            return dragonfly_key(own, (terminal, local, destination >> 2 * shift))
        n = self.dimensions
        c, d = self.address.split(place.own, n), self.address.split(destination, n + 1)
        if self.mode == "fat_tree":
            return fat_tree_key(place.level, c, d, self.up_choice)
        key = mesh_key(c, d) if self.mode == "mesh" else torus_key(c, d, self.radices)
        return ("L", d[n]) if key == ("L",) and self.hosts_per_router > 1 else key

    def member(self, destination: int) -> int:
        """Return the link-aggregation member of a destination, 0 … members − 1.

        Examples
        --------
        >>> NodeReduction.arbitrary(members=4, member_hash="modulo").member(6)
        2
        """
        if self.member_hash == "modulo":
            return destination % self.members
        return crc_address(self.crc, destination, self.address.width_bits) % self.members

    def encode(self, key: HumanKey, member: int = 0) -> int:
        """Return the key as an integer of `key_bits` bits (docs/architecture.md, "Cache keys").

        Raises
        ------
        ValueError
            If the key is none of this mode.
        """
        a = self.address.width_bits
        if self.mode == "arbitrary":
            if key[0] != "A":
                raise ValueError(f"key must be ('A', address) in mode arbitrary, not {key}")
            return int(key[1])  # type: ignore[misc]
        kinds = _KINDS[self.mode]
        name = (key[0], str(key[2]) if len(key) == 3 else "")
        if name not in kinds:
            known = ", ".join(letter + sign for letter, sign in kinds)
            raise ValueError(f"key must be one of {known} in mode {self.mode}, not {key}")
        value = key[1] & (1 << self.value_bits) - 1 if len(key) > 1 else 0  # type: ignore[misc]
        payload = (member << KIND_BITS | kinds[name]) << self.value_bits | value
        return MODES.index(self.mode) << a | payload

    def decode(self, key: int) -> tuple[HumanKey, int]:
        """Return the key for people and the member of an encoded key.

        Raises
        ------
        ValueError
            If the key is of another mode, or of no kind.
        """
        a = self.address.width_bits
        if key >> a != MODES.index(self.mode):
            raise ValueError(f"key must be of mode {MODES.index(self.mode)} ({self.mode}), not {key >> a}")
        if self.mode == "arbitrary":
            return ("A", key), 0
        value = key & (1 << self.value_bits) - 1
        kind = key >> self.value_bits & (1 << KIND_BITS) - 1
        member = key >> a - MEMBER_BITS & MAX_MEMBERS - 1
        for (letter, sign), number in _KINDS[self.mode].items():
            if number == kind:
                if letter == "L" and self.hosts_per_router == 1:
                    return ("L",), member
                return ((letter, value, sign) if sign else (letter, value)), member
        raise ValueError(f"key must be of a kind of mode {self.mode}, not {kind}")

    def key(self, router: int, destination: int) -> int:
        """Return the encoded key of address `destination` at switch `router`, with its member."""
        human = self.human(router, destination)
        return self.encode(human, 0 if self.mode == "arbitrary" else self.member(destination))

    # --- arrays

    def keys(self, routers: ArrayLike, destinations: ArrayLike) -> NDArray[np.int64]:
        """Return encoded keys of arrays of switches and destinations, which are broadcast, as `key` does for one.

        Returns
        -------
        ndarray, int64
            Of the broadcast shape.
        """
        d = np.asarray(destinations, dtype=np.int64)
        self.check_destinations(d)
        own, level = self.switches(routers)
        if self.mode == "arbitrary":
            return np.broadcast_arrays(own, d)[1].copy()
        reduce = {"fat_tree": self._fat_tree_keys, "dragonfly": self._dragonfly_keys}.get(self.mode, self._grid_keys)
        kind, value = reduce(own, level, d)
        payload = (self.member_array(d) << KIND_BITS | kind) << self.value_bits | value & (1 << self.value_bits) - 1
        return MODES.index(self.mode) << self.address.width_bits | payload

    def member_array(self, destinations: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the link-aggregation members of many destinations, as `member` does for one."""
        if self.members == 1:
            return np.zeros_like(destinations)
        if self.member_hash == "modulo":
            return destinations % self.members
        hashed = crc_addresses(self.crc, destinations, self.address.width_bits)
        return (hashed % np.uint64(self.members)).astype(np.int64)

    def _digit_array(self, words: NDArray[np.int64], index: int) -> NDArray[np.int64]:
        return words >> index * self.address.chunk_bits & self.address.digit_values - 1

    def _grid_keys(
        self, own: NDArray[np.int64], level: NDArray[np.int64], d: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        n = self.dimensions
        terminal = self._digit_array(d, n) if self.hosts_per_router > 1 else np.int64(0)
        value = np.broadcast_to(terminal, np.broadcast_shapes(own.shape, d.shape)).copy()
        kind = np.zeros_like(value)
        for i in reversed(range(n)):  # the first dimension has the last word
            offset = self._digit_array(d, i) - self._digit_array(own, i)
            half = self.radices[i] // 2 if self.mode == "torus" else self.address.digit_values
            plus = ((offset > 0) & (offset <= half)) | (offset < -half)
            kind = np.where(offset == 0, kind, np.where(plus, 1, 2))
            value = np.where(offset == 0, value, i)
        return kind, value

    def _fat_tree_keys(
        self, own: NDArray[np.int64], level: NDArray[np.int64], d: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        straight = d >> level * self.address.chunk_bits & self.address.digit_values - 1
        up = np.zeros(np.broadcast_shapes(own.shape, d.shape), dtype=bool)
        highest = straight
        for i in range(self.dimensions):
            differs = (self._digit_array(d, i + 1) != self._digit_array(own, i)) & (i >= level)
            up |= differs
            highest = np.where(differs, self._digit_array(d, i), highest)
        value = highest if self.up_choice == "highest_mismatch" else straight
        return np.where(up, 1, 2), value

    def _dragonfly_keys(
        self, own: NDArray[np.int64], level: NDArray[np.int64], d: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        shift = 2 * self.address.chunk_bits
        other_group = d >> shift != own >> shift
        other_router = self._digit_array(d, 1) != self._digit_array(own, 1)
        kind = np.where(other_group, 2, np.where(other_router, 1, 0))
        value = np.where(other_router, self._digit_array(d, 1), self._digit_array(d, 0))
        return kind, np.where(other_group, d >> shift, value)

    # --- kernels

    @cached_property
    def tables(self) -> KeyTables:
        """The same function for kernels."""
        n = self.dimensions
        far = self.address.digit_values
        half = [radix // 2 if self.mode == "torus" else far for radix in self.radices[:n]]
        digit_of = np.zeros(64, dtype=np.int64)
        for bit in range(63):
            product = (1 << bit) * DE_BRUIJN & (1 << 64) - 1
            digit_of[product >> 58] = bit // self.address.chunk_bits
        return KeyTables(
            mode=MODES.index(self.mode), address_bits=self.address.width_bits, chunk_bits=self.address.chunk_bits,
            digits=n, half=np.array([*half, 0], dtype=np.int64), highest=int(self.up_choice == "highest_mismatch"),
            members=self.members, modulo=int(self.member_hash == "modulo"),
            crc=crc_tables(self.crc, self.address.width_bits), digit_of=digit_of,
        )  # fmt: skip
