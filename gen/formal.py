"""Proofs of small designs by induction, with yosys's solver."""

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import Assert, ClockDomain, Elaboratable, Module, Signal, Value

from hopforge.gen.yosys import run_yosys

__all__ = ["Proof", "at_most_one", "induction_log", "prove"]


def at_most_one(word: Value) -> Value:
    """Whether at most one bit is set."""
    return (word & (word - 1)[: len(word)]) == 0


class Proof(Elaboratable):
    """A design that starts in the state after reset, and what is said about it.

    Attributes
    ----------
    inputs : list of Signal
        Free inputs, the clock first; a proof adds its own.
    """

    def __init__(self) -> None:
        self.domain = ClockDomain("sync", reset_less=True)
        self.inputs: list[Signal] = [self.domain.clk]

    def module(self) -> Module:
        """Return an empty module with the clock domain."""
        m = Module()
        m.domains.sync = self.domain
        return m

    def claim(self, m: Module, claims: Iterable[Value]) -> None:
        """Assert each of `claims`, by a signal of its own so that a failed proof can name it."""
        for number, claim in enumerate(claims):
            holds = Signal(name=f"claim{number}")
            m.d.comb += [holds.eq(claim), Assert(holds)]


def prove(
    proof: Elaboratable,
    inputs: Sequence[Signal],
    *,
    steps: int = 1,
    mutant: tuple[str, str] | None = None,
    timeout_s: float = 120,
) -> bool:
    """Prove the assertions of a design from reset for all time, by induction over at most `steps` cycles.

    Parameters
    ----------
    proof : Elaboratable
        Design with ``Assert`` and ``Assume``, and a clock domain without reset of its own.
    inputs : sequence of Signal
        Its free inputs, the clock among them.
    steps : int
        Length of the induction.
    mutant : tuple of str, optional
        A wire of the flattened design, as yosys names it, and the constant it is tied to: a fault.
    timeout_s : float
        Limit in seconds.

    Returns
    -------
    bool
        Whether the proof succeeded.

    Raises
    ------
    YosysError
        If yosys fails otherwise, or takes too long.
    """
    log = induction_log(proof, inputs, f"-maxsteps {steps}", mutant=mutant, timeout_s=timeout_s)
    return "Induction step proven: SUCCESS" in log


def induction_log(
    proof: Elaboratable,
    inputs: Sequence[Signal],
    options: str,
    *,
    mutant: tuple[str, str] | None = None,
    timeout_s: float = 120,
) -> str:
    """Run yosys's solver by temporal induction, with more `options` of its ``sat`` command, and return its log.

    The other parameters and the errors are those of `prove`.
    """
    script = [
        "read_rtlil proof.il",
        "hierarchy -top proof",
        "proc",
        "flatten",
        "memory_collect",
        "memory_map",
        *(["cd proof", f"connect -set {mutant[0]} {mutant[1]}", "cd"] if mutant else []),
        "opt -full",
        "chformal -lower",
        "async2sync",
        "opt -full",
        "opt_clean -purge",
        f"sat -prove-asserts -set-assumes -tempinduct -seq 1 {options} proof",
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "proof.il").write_text(rtlil.convert(proof, name="proof", ports=list(inputs), emit_src=False))
        return run_yosys("\n".join(script) + "\n", path, name="proof", timeout_s=timeout_s)
