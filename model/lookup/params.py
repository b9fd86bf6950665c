"""Elaboration parameters of a lookup engine, derived from the configuration.

The hardware and the golden engine are both built from them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, Self, cast

from hopforge.model.config import Config, CrcConfig
from hopforge.model.config.limits import KEY_KIND_BITS, hardware_problems
from hopforge.model.config.lookup import DEEP_LEAST, KEY_FUNCTIONS, KEY_MODE_BITS, POLICIES, KeyMode, Policy
from hopforge.model.expression.compile import Compiled
from hopforge.model.lookup.second_level import SecondLevelParams
from hopforge.model.numbers.code_word import PROTECTIONS, Protection, check_bits
from hopforge.model.numbers.crc import crc_spec

TcamKind = Literal["flops", "sram", "external"]

MEMBER_BITS = 4
FLOPS_ROWS_MAX = 128  # spec/router.md: flop-based up to 128 rows, SRAM-based above
_LIMITS = {
    "address_bits": (12, 48),
    "comparators": (1, 24),
    "ways": (1, 64),
    "output_bits": (1, 64),
    "epoch_bits": (1, 8),
    "random_seed": (1, 65535),
    "max_members": (1, 16),
    "mshrs": (1, 64),
    "request_tag_bits": (1, 32),
    "pipeline_depth": (1, 8),
    "tcam_rows": (1, 4096),
    "tcam_latency_cycles": (1, 1024),
}


@dataclass(frozen=True, kw_only=True)
class LookupParams:
    """One lookup engine, everything decided (docs/definitions/lookup-engine.md).

    Parameters
    ----------
    address_bits : int
        Width A of a destination address.
    functions : tuple of str
        Key functions in the hardware; ``arbitrary`` is always one.
    chunk_bits : tuple of int
        Chunk widths, in the order of MODE.chunk_select.
    comparators : int
        Interval comparators; with chunks of K bits the first min(comparators, A // K) are used.
    entries, ways : int
        Lines in all and per set; the number of sets is a power of two.
    policy : str
        ``lru``, ``plru``, ``fifo`` or ``random``.
    skewed : bool
        Every way has an index function of its own (policy ``random`` only).
    tag_bits, output_bits, epoch_bits : int
        Widths in a line; a tag holds a key of A + 4 bits, zero-extended.
    crc : str or CrcConfig
        Hash of the set index and of the link-aggregation member: name in the catalogue, or parameters.
    random_seed : int
        Start of the random policy's shift register, not 0.
    max_members : int
        Most link-aggregation members.
    mshrs : int
        Misses that can wait.
    request_tag_bits : int
        Width T of a request's tag.
    pipeline_depth : int
        Depth, 1 to 8: hit latency in cycles without a memory stage.
    memory_stage : bool
        A stage more, behind the memories (depths 5 to 8).
    tcam_kind : str
        ``flops``, ``sram`` or ``external``.
    tcam_rows, tcam_latency_cycles : int
        Rows and latency of the TCAM inside (external: not used).
    expression : Compiled, optional
        Keys by an expression; ``expression`` is then among the functions.
    second_level : SecondLevelParams, optional
        Second level behind the MSHRs, if any (docs/definitions/second-level.md).
    protection : str, optional
        Check bits of a line: ``parity`` or ``secded``.

    Raises
    ------
    ValueError
        Naming the parameter, its limit and its value.
    """

    address_bits: int = 24
    functions: tuple[KeyMode | Literal["expression"], ...] = KEY_FUNCTIONS
    chunk_bits: tuple[int, ...] = (2, 3, 4, 6, 8)
    comparators: int = 12
    entries: int = 2048
    ways: int = 4
    policy: Policy = "lru"
    skewed: bool = False
    tag_bits: int = 64
    output_bits: int = 16
    epoch_bits: int = 8
    crc: str | CrcConfig = "CRC-32C"
    random_seed: int = 0xACE1
    max_members: int = 1
    mshrs: int = 8
    request_tag_bits: int = 8
    pipeline_depth: int = 3
    memory_stage: bool = False
    tcam_kind: TcamKind = "flops"
    tcam_rows: int = 64
    tcam_latency_cycles: int = 8
    expression: Compiled | None = None
    second_level: SecondLevelParams | None = None
    protection: Protection | None = None

    def __post_init__(self) -> None:
        for problem in self._problems():
            raise ValueError(problem)

    @classmethod
    def from_config(cls, config: Config) -> Self:
        """Return the parameters of the engine that `config` describes.

        Without node reduction (``lookup.reduction: false``) the only key function is ``arbitrary``.

        Raises
        ------
        ValueError
            If the hardware can't do what `config` wants.
        """
        lookup, cache, tcam = config.lookup, config.lookup.cache, config.lookup.tcam
        for problem in hardware_problems(config.address, lookup):
            raise ValueError(str(problem))
        kind = tcam.kind
        if kind == "auto":
            kind = "flops" if tcam.rows <= FLOPS_ROWS_MAX or tcam.latency_cycles < 2 else "sram"
        expression = None
        if lookup.expression is not None:
            address = config.address
            expression = lookup.expression.compiled(config.topology, address.width_bits, address.chunk_bits)
        second = cache.second_level
        functions = (*lookup.functions, *(("expression",) if expression is not None else ()))
        return cls(
            address_bits=config.address.width_bits,
            functions=functions if lookup.reduction else ("arbitrary",),
            expression=expression,
            chunk_bits=lookup.chunk_bits,
            comparators=lookup.comparators,
            entries=cache.entries,
            ways=cache.ways,
            policy=cast("Policy", cache.policy),  # `hardware_problems` has refused others
            skewed=cache.skewed,
            tag_bits=cache.tag_bits,
            output_bits=cache.output_bits,
            epoch_bits=cache.epoch_bits,
            crc=cache.crc,
            random_seed=cache.random_seed,
            max_members=lookup.lag.max_members,
            mshrs=lookup.mshrs,
            request_tag_bits=lookup.request_tag_bits,
            pipeline_depth=lookup.pipeline_depth,
            memory_stage=lookup.memory_stage,
            tcam_kind=kind,
            tcam_rows=tcam.rows,
            tcam_latency_cycles=tcam.latency_cycles,
            second_level=None if second is None else SecondLevelParams(**second.model_dump(exclude={"content", "per"})),
            protection=None if cache.protection == "none" else cache.protection,
        )

    @property
    def hit_cycles(self) -> int:
        """Cycles from a request to its answer on a hit."""
        return self.pipeline_depth + self.memory_stage

    @property
    def key_bits(self) -> int:
        """Width of a key: mode and payload."""
        return self.address_bits + KEY_MODE_BITS

    @property
    def value_bits(self) -> int:
        """Width of the value of a reduced key (below member and kind)."""
        return self.address_bits - KEY_KIND_BITS

    @property
    def line_data_bits(self) -> int:
        """Bits of a line that mean something: key, output, epoch, valid bit."""
        return self.key_bits + self.output_bits + self.epoch_bits + 1

    @property
    def line_check_bits(self) -> int:
        """Check bits of a line."""
        return 0 if self.protection is None else check_bits(self.line_data_bits, self.protection)

    @property
    def sets(self) -> int:
        """Number of sets, a power of two."""
        return self.entries // self.ways

    @property
    def index_bits(self) -> int:
        """Width of a set index; 0 for one set."""
        return self.sets.bit_length() - 1

    @property
    def mshr_id_bits(self) -> int:
        """Width of an MSHR number, at least 1."""
        return max(1, (self.mshrs - 1).bit_length())

    @property
    def radices(self) -> int:
        """Number of RADIX registers: the most comparators that any chunk width uses."""
        return max(self.digits(bits) for bits in self.chunk_bits)

    @property
    def comparator_bits(self) -> tuple[int, ...]:
        """Width of each comparator that is used: the widest chunk that has a digit for it."""
        return tuple(
            max(bits for bits in self.chunk_bits if self.digits(bits) > index) for index in range(self.radices)
        )

    @property
    def second_lines(self) -> Self:
        """An engine whose cache has the lines of the second level, which there is."""
        second = self.second_level
        assert second is not None
        return replace(
            self, entries=second.entries, ways=second.ways, policy=second.policy, skewed=False, second_level=None
        )  # fmt: skip

    def digits(self, chunk_bits: int) -> int:
        """Return how many comparators are used with chunks of `chunk_bits`: min(comparators, A // chunk_bits)."""
        return min(self.comparators, self.address_bits // chunk_bits)

    def _problems(self) -> Iterator[str]:
        for name, (low, high) in _LIMITS.items():
            if not low <= getattr(self, name) <= high:
                yield f"{name} must be {low} to {high}, not {getattr(self, name)}"
        if self.second_level is not None:
            yield from self.second_level.problems()
            if self.protection is not None:
                yield f"protection must be None with a second level, not {self.protection!r}"
        if self.memory_stage and self.pipeline_depth < DEEP_LEAST:
            yield f"pipeline_depth must be {DEEP_LEAST} to 8 with a memory stage, not {self.pipeline_depth}"
        yield from self._key_problems()
        yield from self._cache_problems()
        if self.tcam_kind not in {"flops", "sram", "external"}:
            yield f"tcam_kind must be flops, sram or external, not {self.tcam_kind!r}"
        if self.tcam_kind == "sram" and self.tcam_latency_cycles < 2:
            yield f"tcam_latency_cycles must be at least 2 for tcam_kind=sram, not {self.tcam_latency_cycles}"

    def _key_problems(self) -> Iterator[str]:
        if "arbitrary" not in self.functions:
            yield f"functions must contain 'arbitrary', not {self.functions}"
        for function in self.functions:
            if function not in (*KEY_FUNCTIONS, "expression"):
                yield f"functions must be of arbitrary, mesh, torus, fat_tree and dragonfly, not {function!r}"
        if ("expression" in self.functions) != (self.expression is not None):
            yield "functions must contain 'expression' exactly if there is one"
        elif self.expression is not None and self.expression.names.address_bits != self.address_bits:
            of = self.expression.names.address_bits
            yield f"expression must be one of address_bits={self.address_bits}, not {of}"
        if not 1 <= len(self.chunk_bits) <= 5:
            yield f"chunk_bits must hold 1 to 5 widths, not {len(self.chunk_bits)}"
        for bits in self.chunk_bits:
            if bits not in {2, 3, 4, 6, 8}:
                yield f"chunk_bits must be of 2, 3, 4, 6 and 8, not {bits}"
            if bits > self.value_bits and self.functions != ("arbitrary",):
                yield f"chunk_bits must be at most address_bits - {KEY_KIND_BITS} = {self.value_bits}, not {bits}"
        for name in ("functions", "chunk_bits"):
            values = getattr(self, name)
            if len(set(values)) < len(values):
                yield f"{name} must name each only once, not {values}"

    def _cache_problems(self) -> Iterator[str]:
        if self.entries < 1:
            yield f"entries must be at least 1, not {self.entries}"
        if self.entries % self.ways:
            yield f"ways must divide entries={self.entries}, not {self.ways}"
        if self.sets & (self.sets - 1):
            yield f"entries must give a power of two of sets, not {self.entries}/{self.ways} = {self.sets}"
        if self.policy not in POLICIES:
            yield f"policy must be {', '.join(POLICIES[:-1])} or {POLICIES[-1]}, not {self.policy!r}"
        if self.policy == "plru" and self.ways & (self.ways - 1):
            yield f"policy plru needs a power of two of ways, not ways={self.ways}"
        if self.skewed and self.policy != "random":
            yield f"policy must be random with skewed association in hardware, not {self.policy}"
        index_bits = max(self.index_bits, 0 if self.second_level is None else self.second_level.index_bits)
        if crc_spec(self.crc).width < index_bits:
            yield f"crc must have at least the {index_bits} bits of a set index, not {crc_spec(self.crc).width}"
        if self.protection not in (None, *PROTECTIONS):
            yield f"protection must be {' or '.join(PROTECTIONS)}, or None, not {self.protection!r}"
        if not self.key_bits <= self.tag_bits <= 64:
            yield f"tag_bits must be address_bits + {KEY_MODE_BITS} = {self.key_bits} to 64, not {self.tag_bits}"
