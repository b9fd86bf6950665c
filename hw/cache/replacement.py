"""Replacement policies of a set: which way is the next victim, and what a touch does to the state."""

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hopforge.model.config.lookup import POLICIES


def state_bits(policy: str, ways: int) -> int:
    """Bits of replacement state per set.

    Parameters
    ----------
    policy : {"lru", "plru", "fifo", "random"}
        Policy.
    ways : int
        Lines per set.

    Returns
    -------
    int
        0 where the policy needs no state per set (random, or a single way).
    """
    return {
        "lru": ways * (ways - 1) // 2,
        "plru": ways - 1,
        "fifo": ceil_log2(ways),
        "random": 0,
    }[policy]


def check_policy(policy: str, ways: int) -> None:
    """Refuse a policy that does not exist or does not fit the number of ways.

    Raises
    ------
    ValueError
        Unknown policy, no way, or pseudo-LRU with a number of ways that is no power of two.
    """
    if policy not in POLICIES:
        raise ValueError(f"policy must be one of {', '.join(POLICIES)}, not {policy!r}")
    if ways < 1:
        raise ValueError(f"ways must be at least 1, not {ways}")
    if policy == "plru" and ways & (ways - 1):
        raise ValueError(f"ways must be a power of two for policy plru, not {ways}")


class Replacement(wiring.Component):
    """Victim and next state of one set (combinational; random: one shift register for the whole cache).

    The state after a touch is formed from the one-hot ``touch`` in two levels of gates, because ``touch`` comes out
    of the tag compare and is late; ``victim`` depends on ``state`` alone.

    Encodings, all 0 after reset: *lru*: bit (i, j), i < j, is 1 when way i was touched after way j. *plru*: node n has
    the children 2n+1 and 2n+2; a 1 sends the victim to the right. *fifo*: number of the next victim. *random*:
    Fibonacci register of 16 bits, taps 16, 15, 13, 4; victim = (register · ways) >> 16.

    Ports: ``state``, ``touch`` (one-hot or 0), ``next_state`` (all three absent without state bits), ``victim``
    (one-hot), ``step`` (random only: the register moves at the end of the cycle).

    Parameters
    ----------
    policy : {"lru", "plru", "fifo", "random"}
        Policy.
    ways : int
        Lines per set.
    seed : int
        Start of the random register, 1 … 65535.

    Raises
    ------
    ValueError
        Unknown policy, ways below 1, pseudo-LRU with ways no power of two, seed out of range.
    """

    state: Signal
    touch: Signal
    next_state: Signal
    victim: Signal
    step: Signal

    def __init__(self, *, policy: str, ways: int, seed: int = 0xACE1):
        check_policy(policy, ways)
        if not 1 <= seed <= 0xFFFF:
            raise ValueError(f"seed must be between 1 and 65535, not {seed}")
        self.policy = policy
        self.ways = ways
        self.seed = seed
        self.state_bits = state_bits(policy, ways)
        ports = {"victim": Out(ways)}
        if self.state_bits:
            ports |= {
                "state": In(self.state_bits),
                "touch": In(ways),
                "next_state": Out(self.state_bits),
            }
        if self.has_step:
            ports["step"] = In(1)
        super().__init__(ports)

    @property
    def has_step(self) -> bool:
        """Whether the policy draws random numbers."""
        return self.policy == "random" and self.ways > 1

    def elaborate(self, platform: object) -> Module:
        """Build the logic of the chosen policy."""
        m = Module()
        if self.ways == 1:
            m.d.comb += self.victim.eq(1)
        else:
            {"lru": self._lru, "plru": self._plru, "fifo": self._fifo, "random": self._random}[self.policy](m)
        return m

    def _lru(self, m: Module) -> None:
        pair: dict[tuple[int, int], int] = {}
        for j in range(self.ways):
            for i in range(j):
                pair[i, j] = len(pair)
        for (i, j), bit in pair.items():
            m.d.comb += self.next_state[bit].eq((self.state[bit] | self.touch[i]) & ~self.touch[j])
        for way in range(self.ways):
            newer = [self.state[pair[way, j]] for j in range(way + 1, self.ways)]
            older = [self.state[pair[i, way]] for i in range(way)]
            m.d.comb += self.victim[way].eq(~Cat(newer).any() & Cat(older).all())

    def _plru(self, m: Module) -> None:
        levels = ceil_log2(self.ways)
        for node in range(self.ways - 1):
            level = (node + 1).bit_length() - 1
            span = self.ways >> level
            first = (node + 1 - (1 << level)) * span
            left = self.touch[first : first + span // 2].any()
            right = self.touch[first + span // 2 : first + span].any()
            m.d.comb += self.next_state[node].eq((self.state[node] | left) & ~right)
        for way in range(self.ways):
            node = 0
            path: list[Value] = []
            for level in reversed(range(levels)):
                right_child = way >> level & 1
                path.append(self.state[node] if right_child else ~self.state[node])
                node = 2 * node + 1 + right_child
            m.d.comb += self.victim[way].eq(Cat(path).all())

    def _fifo(self, m: Module) -> None:
        last = self.ways - 1
        for way in range(last):
            m.d.comb += self.victim[way].eq(self.state == way)
        # Everything beyond the last way counts as the last one: a memory that wakes up with garbage still works.
        m.d.comb += self.victim[last].eq(self.state >= last)
        successor = Signal(self.state_bits)
        with m.If(~self.victim[last]):
            m.d.comb += successor.eq(self.state + 1)
        own_way_filled = Signal()
        m.d.comb += own_way_filled.eq((self.touch & self.victim).any())
        with m.If(own_way_filled):
            m.d.comb += self.next_state.eq(successor)
        with m.Else():
            m.d.comb += self.next_state.eq(self.state)

    def _random(self, m: Module) -> None:
        register = Signal(16, init=self.seed)
        with m.If(self.step):
            m.d.sync += register.eq(Cat(register[15] ^ register[14] ^ register[12] ^ register[3], register[:15]))
        scaled = Signal(16 + ceil_log2(self.ways))
        m.d.comb += scaled.eq(register * Const(self.ways))
        for way in range(self.ways):
            m.d.comb += self.victim[way].eq(scaled[16:] == way)
