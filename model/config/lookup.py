"""Sections `address`, `lookup`, `rule_cache` and `wavelengths`: what lookup engines and their caches are made of."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_args

from pydantic import Discriminator, Field, Tag

from hopforge.model.config.base import ConfigPath, Problem, Section, suggestion
from hopforge.model.config.key_expression import KeyExpressionConfig
from hopforge.model.numbers.crc_catalogue import CRC

Policy = Literal["lru", "plru", "fifo", "random"]
POLICIES: tuple[Policy, ...] = get_args(Policy)  # of the lookup engine; kernels call them by their place
ReplayedPolicy = Literal["lru", "plru", "fifo", "random", "srrip"]
REPLAYED_POLICIES: tuple[ReplayedPolicy, ...] = get_args(ReplayedPolicy)  # of `hits` and `app`
SecondContent = Literal["nine", "inclusive", "exclusive"]
SECOND_CONTENTS: tuple[SecondContent, ...] = get_args(SecondContent)  # kernels call them by their place
KeyMode = Literal["arbitrary", "mesh", "torus", "fat_tree", "dragonfly"]
ChunkBits = Literal[2, 3, 4, 6, 8]
MAX_WIDTH_BITS = 48
KEY_FUNCTIONS: tuple[KeyMode, ...] = get_args(KeyMode)
SECOND_LEVEL_LATENCY = (4, 64)  # least and most cycles
DEEP_LEAST = 5
"""Least `pipeline_depth` of the engines that let nothing wait behind their choice."""
KEY_MODE_BITS = 4  # a cache key is the address plus its mode (docs/architecture.md)


class AddressConfig(Section):
    """Destination addresses: total width and the width of one chunk (digit)."""

    width_bits: Annotated[int, Field(ge=12, le=MAX_WIDTH_BITS)] = 24
    """Width of a destination address."""
    chunk_bits: ChunkBits = 4
    """Width of one digit of an address in this network; holds radices up to 2^chunk_bits."""


class CrcConfig(Section):
    """A CRC that is not in the catalogue (Rocksoft parameters)."""

    bit_patterns = frozenset({"poly", "init", "xorout"})

    width: Annotated[int, Field(ge=1, le=64)]
    """Width of the register in bits."""
    poly: Annotated[int, Field(ge=0)]
    """Polynomial without its leading 1, highest power first (hexadecimal 0x... is allowed)."""
    init: Annotated[int, Field(ge=0)] = 0
    """Start value of the register."""
    refin: bool = False
    """Take each byte with its lowest bit first."""
    refout: bool = False
    """Reflect the result."""
    xorout: Annotated[int, Field(ge=0)] = 0
    """Value that the result is combined with by exclusive or."""

    def problems(self) -> Iterator[Problem]:
        """Check that every value fits the register."""
        for key in ("poly", "init", "xorout"):
            value = getattr(self, key)
            if value >> self.width:
                yield Problem(key, f"must be less than 2^{self.width} (width={self.width}), not {value:#x}")


def _geometry(entries: int, ways: int, policy: ReplayedPolicy) -> Iterator[Problem]:
    if entries % ways:
        yield Problem("ways", f"must divide entries={entries}, not {ways}")
    elif (sets := entries // ways) & (sets - 1):
        yield Problem("entries", f"must give a power of two of sets, not {entries}/{ways} = {sets}")
    if policy == "plru" and ways & (ways - 1):
        yield Problem("policy", f"plru needs a power of two of ways, not ways={ways}")


class SecondLevelConfig(Section):
    """Optional second-level cache behind each first-level cache (docs/definitions/second-level.md)."""

    entries: Annotated[int, Field(ge=1)] = 8192
    """Lines in all."""
    ways: Annotated[int, Field(ge=1, le=64)] = 4
    """Lines of a set; must divide `entries` into a power of two of sets."""
    policy: ReplayedPolicy = "lru"
    """Replacement policy; `srrip` only in `hits` and `app`."""
    latency_cycles: Annotated[int, Field(ge=SECOND_LEVEL_LATENCY[0], le=SECOND_LEVEL_LATENCY[1])] = (
        SECOND_LEVEL_LATENCY[0]
    )
    """Cycles from the request of an engine to the answer on a hit; `hits` takes `timing.second_level_ns`."""
    content: SecondContent = "nine"
    """`nine`: neither inclusive nor exclusive; `inclusive`: a key that leaves it leaves the first level, too;
    `exclusive`: it holds what the first level has given up. Only `hits` and `app` take the others."""
    per: Literal["cache", "switch"] = "cache"
    """One behind each first-level cache, or one for all of a switch (only in `hits` and `app`)."""

    def problems(self) -> Iterator[Problem]:
        """Check sets and ways."""
        yield from _geometry(self.entries, self.ways, self.policy)


def _crc_tag(value: Any) -> str:
    return "<parameters>" if isinstance(value, dict | CrcConfig) else "<name>"


class CacheConfig(Section):
    """Geometry and policy of the routing cache of one input port."""

    enabled: bool = True
    """Off: every lookup asks the TCAM."""
    entries: Annotated[int, Field(ge=1)] = 2048
    """Lines in all."""
    ways: Annotated[int, Field(ge=1, le=64)] = 4
    """Lines of a set; must divide `entries` into a power of two of sets."""
    policy: ReplayedPolicy = "lru"
    """Replacement policy; `plru` needs a power of two of ways, `srrip` runs only in `hits` and `app`."""
    skewed: bool = False
    """Each way has an index function of its own; the hardware then needs `policy: random`."""
    tag_bits: Annotated[int, Field(ge=16, le=64)] = 64
    """Width of the stored tag; at least `address.width_bits` + 4."""
    output_bits: Annotated[int, Field(ge=1, le=64)] = 16
    """Width of the stored output port or port set."""
    output_kind: Literal["port", "port_set"] = "port"
    """A line holds one port number, or a bit for each allowed port."""
    epoch_bits: Annotated[int, Field(ge=1, le=8)] = 8
    """A flush moves on to the next of 2^epoch_bits epochs at once; lines of old epochs are removed meanwhile."""
    crc: Annotated[
        Annotated[str, Tag("<name>")] | Annotated[CrcConfig, Tag("<parameters>")], Discriminator(_crc_tag)
    ] = "CRC-32C"
    """Hash of the set index: `CRC-32C` and others of the catalogue (model/numbers/crc.py), or parameters."""
    random_seed: Annotated[int, Field(ge=1, le=65535)] = 0xACE1
    """Start value of the shift register of the random policy."""
    protection: Literal["none", "parity", "secded"] = "none"
    """Check bits of a line: parity makes a line with a changed bit a miss, SECDED corrects one bit."""
    second_level: SecondLevelConfig | None = None
    """Second-level cache, if any."""

    def problems(self) -> Iterator[Problem]:
        """Check sets, ways, policy and hash."""
        yield from _geometry(self.entries, self.ways, self.policy)
        if self.skewed and self.policy in ("plru", "srrip"):
            words = f"{self.policy} is not defined for skewed association; take random, lru or fifo"
            yield Problem("policy", words)
        if isinstance(self.crc, str) and self.crc not in CRC:
            yield Problem("crc", f"unknown {self.crc!r}; {suggestion(self.crc, CRC)}")
            return
        width = CRC[self.crc].width if isinstance(self.crc, str) else self.crc.width
        index_bits = (self.entries // self.ways - 1).bit_length()
        if self.second_level is not None:
            if self.protection != "none":
                yield Problem("protection", f"must be none with a second level, not {self.protection}")
            second = self.second_level
            index_bits = max(index_bits, (second.entries // second.ways - 1).bit_length())
        if width < index_bits:
            yield Problem("crc", f"must be at least as wide as the set index, {index_bits} bits, not {width}")


class LagConfig(Section):
    """Link aggregation: members per logical port, and how a member is chosen."""

    max_members: Annotated[int, Field(ge=1, le=16)] = 1
    """Most members that the hardware supports."""
    members: Annotated[int, Field(ge=1, le=16)] = 1
    """Members in use, at most `max_members`: with lookup engines every link between routers is so many links."""
    hash: Literal["crc", "modulo"] = "crc"
    """Member = CRC of the destination modulo members, or the destination modulo members."""

    def problems(self) -> Iterator[Problem]:
        """Check the number of members."""
        if self.members > self.max_members:
            yield Problem("members", f"must be at most max_members={self.max_members}, not {self.members}")


class TcamConfig(Section):
    """The ternary CAM asked on a miss."""

    kind: Literal["auto", "flops", "sram", "external"] = "auto"
    """Built of flip-flops, of SRAM blocks, or outside behind a port; `auto` chooses by `rows`."""
    rows: Annotated[int, Field(ge=1, le=4096)] = 64
    """Rows (value, mask, output); the lowest matching row wins."""
    latency_cycles: Annotated[int, Field(ge=1, le=1024)] = 8
    """Cycles from a request to its answer; `sram` needs at least 2."""

    def problems(self) -> Iterator[Problem]:
        """Check the latency."""
        if self.kind == "sram" and self.latency_cycles < 2:
            yield Problem("latency_cycles", f"must be at least 2 for kind=sram, not {self.latency_cycles}")


def _reduction_tag(value: Any) -> str:
    return "<expression>" if isinstance(value, dict | KeyExpressionConfig) else "<switch>"


class LookupConfig(Section):
    """One lookup engine: key functions, cache, MSHRs, TCAM, pipeline."""

    reduction: Annotated[
        Annotated[bool, Tag("<switch>")] | Annotated[KeyExpressionConfig, Tag("<expression>")],
        Discriminator(_reduction_tag),
    ] = True
    """Keys from node reduction (a key per output); `false`: the whole destination address is the key. Or an
    expression of your own (docs/definitions/key-expressions.md)."""
    functions: tuple[KeyMode, ...] = ("arbitrary", "mesh", "torus", "fat_tree", "dragonfly")
    """Key functions in the hardware; `arbitrary` is always among them, it is the mode after reset."""
    chunk_bits: tuple[ChunkBits, ...] = (2, 3, 4, 6, 8)
    """Chunk widths that the hardware can be switched to; `address.chunk_bits` is among them."""
    comparators: Annotated[int, Field(ge=1, le=24)] = 12
    """Interval comparators, one per digit that can decide."""
    up_choice: Literal["d_mod_k", "highest_mismatch"] = "d_mod_k"
    """Up port in a fat tree: by the digit of this level (balanced), or by the highest differing digit."""
    lag: LagConfig = LagConfig()
    """Link aggregation."""
    cache: CacheConfig = CacheConfig()
    """Routing cache."""
    mshrs: Annotated[int, Field(ge=1, le=64)] = 8
    """Misses that can wait at the same time (miss status holding registers)."""
    request_tag_bits: Annotated[int, Field(ge=1, le=32)] = 8
    """Width of the tag that leads an answer back to its request."""
    pipeline_depth: Literal[1, 2, 3, 4, 5, 6, 7, 8] = 3
    """Cycles from a request to its answer on a hit (with `memory_stage` one more)."""
    memory_stage: bool = False
    """A register of its own behind the memories of the cache, for SRAM macros and block RAMs (needs a `pipeline_depth`
    of 5 to 8)."""
    ports_per_engine: Literal[1, 2, 4] = 1
    """Input ports of a router that share an engine, its cache and TCAM; the last engine serves what is left over."""
    tcam: TcamConfig = TcamConfig()
    """Ternary CAM."""

    @property
    def hit_cycles(self) -> int:
        """Cycles from a request to its answer on a hit."""
        return self.pipeline_depth + self.memory_stage

    @property
    def expression(self) -> KeyExpressionConfig | None:
        """Keys by an expression, if that is how they are made."""
        return self.reduction if isinstance(self.reduction, KeyExpressionConfig) else None

    def problems(self) -> Iterator[Problem]:
        """Check the lists."""
        if self.memory_stage and self.pipeline_depth < DEEP_LEAST:
            yield Problem("memory_stage", f"needs pipeline_depth {DEEP_LEAST} to 8, not {self.pipeline_depth}")
        if "arbitrary" not in self.functions:
            yield Problem("functions", "must contain 'arbitrary', the mode after reset and after a topology change")
        for key in ("functions", "chunk_bits"):
            values = getattr(self, key)
            if not values:
                yield Problem(key, "must not be empty")
            for value in dict.fromkeys(values):
                if values.count(value) > 1:
                    yield Problem(key, f"names {value} twice")


__all__ = ["MOST_LINES", "MOST_LINES_IN_SETS", "MOST_WAYS", "RuleCacheConfig", "set_problems"]

MOST_LINES = 64
"""Lines of a fully associative cache."""

MOST_LINES_IN_SETS = 1 << 16
"""Lines of a cache with sets."""

MOST_WAYS = 16
"""Lines of a set."""


def set_problems(entries: int, ways: int | None, index_bits: int | None, address_bits: int) -> Iterator[Problem]:
    """Yield what is wrong with the lines of a rule cache and their sets."""
    if ways is None:
        if entries > MOST_LINES:
            yield Problem("entries", f"must be 1 to {MOST_LINES} without ways, not {entries}")
        if index_bits is not None:
            yield Problem("index_bits", f"needs ways: without sets nothing is hashed, not {index_bits}")
        return
    sets, rest = divmod(entries, ways)
    if rest or sets < 2 or sets & (sets - 1):
        yield Problem(
            "entries",
            f"must be ways={ways} times a power of two from 2 on, not {entries} (for a single set leave ways out)",
        )
    if index_bits is not None and index_bits > address_bits:
        yield Problem("index_bits", f"must be at most address_bits={address_bits}, not {index_bits}")


class RuleCacheConfig(Section):
    """The block (docs/definitions/rule-caches.md, *In hardware*)."""

    policy: Literal["exact", "host", "mep"] = "mep"
    """What a miss caches: the address; its rule if no longer one lies inside, else the address; the shortest prefix
    that is right."""
    entries: Annotated[int, Field(ge=1, le=MOST_LINES_IN_SETS)] = 16
    """Lines of the cache, LRU; without `ways` 64 at most."""
    ways: Annotated[int, Field(ge=1, le=MOST_WAYS)] | None = None
    """Lines of a set, in memories; the sets are a power of two. Without it the cache is fully associative, in
    flip-flops."""
    index_bits: Annotated[int, Field(ge=1)] | None = None
    """With `ways`: highest bits of an address, of which the set is a hash. No line is wider. By default all for policy
    `exact`, else three quarters of the address, 48 at most."""
    rows: Annotated[int, Field(ge=1, le=1024)] = 64
    """Rules that the TCAM holds."""
    address_bits: Annotated[int, Field(ge=1, le=128)] = 32
    """Bits of an address."""
    output_bits: Annotated[int, Field(ge=1, le=32)] = 8
    """Bits of an answer."""
    id_bits: Annotated[int, Field(ge=1, le=16)] = 6
    """Bits of the number of a request."""
    tcam_cycles: Annotated[int, Field(ge=4, le=32)] = 4
    """Cycles from a miss to its answer and line."""
    invalidation: Literal["overlap", "flush"] = "overlap"
    """What an update of a rule removes: the lines that share an address with it, or all."""

    def problems(self) -> Iterator[Problem]:
        """Say what is wrong with the sets."""
        yield from set_problems(self.entries, self.ways, self.index_bits, self.address_bits)


Spread = Literal["rr", "least", "flow", "hash", "hash_low", "bank"]
SPREADS: tuple[Spread, ...] = get_args(Spread)  # kernels call them by their place
Share = Literal["split", "full"]
MOST_LANES = 256


class WavelengthsConfig(Section):
    """Links of several wavelengths, with a lookup engine for the link or for each (docs/definitions/wavelengths.md)."""

    lanes: tuple[Annotated[int, Field(ge=1, le=MOST_LANES)], ...] = (1, 2, 4, 8)
    """Wavelengths of a link, a run for each; every one must divide every rate of `rates_gbps`."""
    spread: tuple[Spread, ...] = ("rr", "flow", "hash", "bank")
    """How packets choose a wavelength: in turns (rr), the one that is free first (least), by source and destination
    (flow), by destination with the high bits of its hash (hash), or with the low bits that also choose the set
    (hash_low), or with a set from the bits above those (bank)."""
    share: tuple[Share, ...] = ("split", "full")
    """Each wavelength has its part of the lines of `lookup.cache.entries` (split), or as many (full)."""
    rates_gbps: tuple[Annotated[int, Field(ge=1, le=1_000_000)], ...] = (400, 800, 1600)
    """Rates of a link for which the cheapest arrangement is chosen."""
    ports: Annotated[int, Field(ge=1, le=4096)] = 64
    """Links of a switch."""
    packets: ConfigPath | None = None
    """Packets of one link (CSV with columns destination, bytes and source) in place of section `workload`; relative to
    this configuration file."""

    def problems(self) -> Iterator[Problem]:
        """Check that lists are lists of different things, and that wavelengths divide rates."""
        for key in ("lanes", "spread", "share", "rates_gbps"):
            values = getattr(self, key)
            if not values:
                yield Problem(key, "must not be empty")
            for value in dict.fromkeys(values):
                if values.count(value) > 1:
                    yield Problem(key, f"names {value} twice")
        for lanes in self.lanes:
            for rate in self.rates_gbps:
                if rate % lanes:
                    yield Problem("lanes", f"must divide rates_gbps={rate}, not {lanes}")
                    return
