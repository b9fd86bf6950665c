"""Proofs of small designs by induction, with yosys's solver."""

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import Assert, ClockDomain, Elaboratable, Module, Signal, Value

from hopforge.gen.abc import run_abc, to_gates
from hopforge.gen.yosys import YosysError, run_yosys

__all__ = ["Proof", "at_most_one", "induction_log", "prove", "prove_in_parts", "refute"]


def at_most_one(word: Value) -> Value:
    """Whether at most one bit is set."""
    return (word & (word - 1)[: len(word)]) == 0


class Proof(Elaboratable):
    """A design that starts in the state after reset, and what is said about it.

    Attributes
    ----------
    inputs : list of Signal
        Free inputs, the clock first; a proof adds its own.
    claims : list of Signal
        What is claimed, once the design is elaborated.
    """

    def __init__(self) -> None:
        self.claims: list[Signal] = []
        self.domain = ClockDomain("sync", reset_less=True)
        self.inputs: list[Signal] = [self.domain.clk]

    def module(self) -> Module:
        """Return an empty module with the clock domain."""
        m = Module()
        m.domains.sync = self.domain
        return m

    def claim(self, m: Module, claims: Iterable[Value]) -> None:
        """Assert each of `claims`, by a signal of its own so that a failed proof can name it."""
        for claim in claims:
            holds = Signal(name=f"claim{len(self.claims)}", attrs={"keep": 1})
            m.d.comb += [holds.eq(claim), Assert(holds)]
            self.claims.append(holds)


def _planted(mutant: tuple[str, str], everywhere: bool) -> list[str]:
    """Return commands that tie a wire of the flattened module to a constant.

    ``connect -set`` ties what drives the wire. Who reads the wire by another name of it may be left with nothing that
    drives it; `everywhere`: all names become one before, and a register that is tied does not begin.
    """
    wire, value = mutant
    names = ["opt_clean", f"setattr -unset init proof/w:{wire}"] if everywhere else []
    return [*names, "cd proof", f"connect -set {wire} {value}", "cd"]


def prove(
    proof: Elaboratable,
    inputs: Sequence[Signal],
    *,
    steps: int = 1,
    mutant: tuple[str, str] | None = None,
    everywhere: bool = False,
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
    everywhere : bool
        The fault is there for all that read the wire by any name; else some of them may read anything.
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
    log = induction_log(proof, inputs, f"-maxsteps {steps}", mutant=mutant, everywhere=everywhere, timeout_s=timeout_s)
    return "Induction step proven: SUCCESS" in log


def induction_log(
    proof: Elaboratable,
    inputs: Sequence[Signal],
    options: str,
    *,
    mutant: tuple[str, str] | None = None,
    everywhere: bool = False,
    timeout_s: float = 120,
) -> str:
    """Run yosys's solver by temporal induction, with more `options` of its ``sat`` command, and return its log.

    The other parameters and the errors are those of `prove`.
    """
    text = rtlil.convert(proof, name="proof", ports=list(inputs), emit_src=False)
    command = f"sat -prove-asserts -set-assumes -tempinduct -seq 1 {options} proof"
    return _solve(text, [command], mutant, everywhere, timeout_s)


def refute(
    proof: Elaboratable,
    inputs: Sequence[Signal],
    steps: int,
    *,
    mutant: tuple[str, str] | None = None,
    everywhere: bool = False,
    timeout_s: float = 300,
) -> bool:
    """Look for a run of at most `steps` cycles from reset that violates an assertion.

    A mutant for which there is one is faulty in truth: a failed induction may begin in a state that is never reached.
    The other parameters and the errors are those of `prove`.

    Returns
    -------
    bool
        Whether there is one.
    """
    text = rtlil.convert(proof, name="proof", ports=list(inputs), emit_src=False)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _solve(text, to_gates("write_aiger -zinit proof.aig"), mutant, everywhere, timeout_s, folder)
        said = run_abc(f"read_aiger proof.aig; fold; strash; bmc3 -F {steps}", folder, timeout_s=timeout_s)
    if said is None:
        raise YosysError(f"abc: no run was found, or none excluded, in {timeout_s:g} s of processor time")
    found = "was asserted in frame" in said
    if found == (f"No output asserted in {steps} frames" in said):
        raise YosysError(f"abc: {said.strip()}")
    return found


def prove_in_parts(
    proof: Proof,
    inputs: Sequence[Signal],
    *,
    part: int = 20,
    mutant: tuple[str, str] | None = None,
    everywhere: bool = False,
    timeout_s: float = 120,
) -> bool:
    """Prove the claims of a design from reset for all time, by induction over one cycle, some of them at a time.

    In the state after reset all hold. From any state in which all hold, `part` of them hold in the next cycle, then the
    next `part`. Small problems take much less time than one of all claims. All of the design must be claimed by
    `Proof.claim`; an ``Assert`` elsewhere is not looked at.

    Parameters
    ----------
    proof : Proof
        Not elaborated yet.
    part : int
        Claims of a problem.
    inputs, mutant, everywhere, timeout_s
        As for `prove`; the limit is for all parts together.

    Returns
    -------
    bool
        Whether every part was proved.

    Raises
    ------
    YosysError
        If yosys fails otherwise, or takes too long.
    """
    text = rtlil.convert(proof, name="proof", ports=list(inputs), emit_src=False)
    names = [claim.name for claim in proof.claims]
    assert names, "nothing is claimed"
    sat = "sat -verify -set-assumes"
    before = " ".join(f"-set-at 1 {name} 1" for name in names)
    script = [
        f"{sat} -seq 1 {_wanted(names)} proof",
        "setattr -unset init w:*",  # any state, not the one after reset
        "select -assert-none a:init",
    ]
    script += [
        f"{sat} -seq 2 {before} -prove-skip 1 {_wanted(names[at : at + part])} proof"
        for at in range(0, len(names), part)
    ]
    try:
        log = _solve(text, script, mutant, everywhere, timeout_s)
    except YosysError as failed:
        if "proof did fail" in str(failed):
            return False
        raise
    return log.count("no model found: SUCCESS") == 1 + -(-len(names) // part)


def _wanted(names: Sequence[str]) -> str:
    return " ".join(f"-prove {name} 1" for name in names)


def _solve(
    text: str,
    commands: Sequence[str],
    mutant: tuple[str, str] | None,
    everywhere: bool,
    timeout_s: float,
    folder: Path | None = None,
) -> str:
    """Flatten the module ``proof`` of an RTLIL text, plant a fault, run the commands, and return the log.

    Files are in `folder`, or in one that is removed.
    """
    if folder is None:
        with tempfile.TemporaryDirectory() as name:
            return _solve(text, commands, mutant, everywhere, timeout_s, Path(name))
    script = [
        "read_rtlil proof.il",
        "hierarchy -top proof",
        "proc",
        "flatten",
        "memory_collect",
        "memory_map",
        *(_planted(mutant, everywhere) if mutant else []),
        "opt -full",
        "chformal -lower",
        "async2sync",
        "opt -full",
        "opt_clean -purge",
        *commands,
    ]
    (folder / "proof.il").write_text(text)
    return run_yosys("\n".join(script) + "\n", folder, name="proof", timeout_s=timeout_s)
