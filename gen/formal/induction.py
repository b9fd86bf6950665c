"""Proofs of small designs by induction, with yosys's solver."""

import re
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import Assert, ClockDomain, Elaboratable, Module, Signal, Value

from hopforge.gen.tools.abc import run_abc, to_gates
from hopforge.gen.tools.yosys import YosysError, run_yosys

__all__ = ["RUN_CYCLES", "Proof", "at_most_one", "planted", "prove", "prove_in_parts", "refute"]


RUN_CYCLES = 24
"""Cycles from reset in which a planted fault of a small design must show."""


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


def planted(mutant: tuple[str, str], module: str) -> list[str]:
    """Return commands of yosys that tie a wire of a flattened module to a constant, for all that read it.

    ``connect -set`` alone would tie a name: what reads the wire by another name would keep what drove it, or be tied
    and driven at once, and a solver may then take either. So all readers are cut off first, by whatever name they read.
    """
    wire, value = mutant
    return [
        "opt_clean", f"cd {module}", f"expose -cut w:{wire}", f"delete -output w:{wire}", f"delete -input w:{wire}.i",
        f"connect -nounset -set {wire}.i {value}", "cd", "check -assert",
    ]  # fmt: skip


def _planted_input(text: str, mutant: tuple[str, str]) -> str | None:
    """Return RTLIL in which an input of a component is tied inside of it; None: the wire is no input of one.

    Behind the component's border the wire has the name of what drives it: `planted` would tie it for everybody, and
    claims and surroundings would know of the fault.
    """
    wire, value = mutant
    path, _, name = wire.rpartition(".")
    begin = text.find(f"\nmodule \\proof.{path}\n")
    if not path or begin < 0:
        return None
    end = text.index("\nend\n", begin)
    body = text[begin:end]
    found = _input_bits(body, name)
    if found is None:
        return None
    port, high, low = found
    declared = re.search(rf"^  wire (?:width \d+ )?input \d+ +{re.escape(port)}$", body, re.MULTILINE)
    assert declared is not None
    tied = rf"\{name}.tied"

    def cut(use: re.Match[str]) -> str:
        top = high if use["high"] is None else int(use["high"])
        bottom = int(use["low"] or use["high"] or low)
        if top < low or bottom > high:
            return use[0]
        if use["high"] is None or (top <= high and bottom >= low):
            return tied + (f" [{top - low}:{bottom - low}]" if use["high"] else "")
        raise ValueError(f"{wire}: {use[0]} is read, which has other bits too")

    uses = re.compile(rf"{re.escape(port)}(?=[\s\[])(?: \[(?P<high>\d+)(?::(?P<low>\d+))?\])?")
    before, after = body[: declared.start()], body[declared.end() :]
    bits = value.replace("'b", "'")  # as RTLIL writes it
    head = f"{uses.sub(cut, before)}{declared[0]}\n  wire width {high - low + 1} {tied}\n  connect {tied} {bits}"
    return text[:begin] + head + uses.sub(cut, after) + text[end:]


def _input_bits(body: str, name: str) -> tuple[str, int, int] | None:
    """Return the input of a module that a wire is, or is a part of, with its highest and lowest bit there."""
    wire = re.search(rf"^  wire width (\d+) (input \d+ +)?(\\{re.escape(name)})$", body, re.MULTILINE)
    if wire is None:
        return None
    if wire[2]:
        return wire[3], int(wire[1]) - 1, 0
    part = rf"^ *connect \\{re.escape(name)} (\\port\$\S+)(?: \[(\d+)(?::(\d+))?\])?$"
    port = re.search(part, body, re.MULTILINE)
    if port is None:
        return None
    high = int(port[2] or int(wire[1]) - 1)
    return port[1], high, int(port[3] or port[2] or 0)


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
        A wire of the flattened design, as yosys names it, and the constant it is tied to: a fault. It is one for all
        that read the wire; an input of a component is tied inside of it. With a fault a run from
        reset that violates an assertion is looked for (`refute`): a failed induction would say less, as it may begin in
        a state that is never reached.
    timeout_s : float
        Limit in seconds.

    Returns
    -------
    bool
        Whether the proof succeeded; with a fault, whether no run of `RUN_CYCLES` cycles shows it.

    Raises
    ------
    YosysError
        If yosys fails otherwise, or takes too long.
    """
    if mutant is not None:
        return not refute(proof, inputs, RUN_CYCLES, mutant=mutant, timeout_s=timeout_s)
    text = rtlil.convert(proof, name="proof", ports=list(inputs), emit_src=False)
    induction = f"sat -prove-asserts -set-assumes -tempinduct -seq 1 -maxsteps {steps} proof"
    log = _solve(text, [induction], None, timeout_s)
    return "Induction step proven: SUCCESS" in log


def refute(
    proof: Elaboratable,
    inputs: Sequence[Signal],
    steps: int,
    *,
    mutant: tuple[str, str] | None = None,
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
        _solve(text, to_gates("write_aiger -zinit proof.aig"), mutant, timeout_s, folder)
        read = "read_aiger proof.aig; fold; strash"
        said = run_abc(f"{read}; bmc3 -F {steps}", folder, timeout_s=timeout_s)
        if said is not None and "Does not work for combinational networks" in said:  # no register decides
            said = run_abc(f"{read}; orpos; sat", folder, timeout_s=timeout_s)
    if said is None:
        raise YosysError(f"abc: no run was found, or none excluded, in {timeout_s:g} s of processor time")
    found = "was asserted in frame" in said or re.search(r"^SATISFIABLE", said, re.MULTILINE) is not None
    if found == (f"No output asserted in {steps} frames" in said or "UNSATISFIABLE" in said):
        raise YosysError(f"abc: {said.strip()}")
    return found


def prove_in_parts(
    proof: Proof,
    inputs: Sequence[Signal],
    *,
    part: int = 20,
    mutant: tuple[str, str] | None = None,
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
    inputs, mutant, timeout_s
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
        log = _solve(text, script, mutant, timeout_s)
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
    timeout_s: float,
    folder: Path | None = None,
) -> str:
    """Flatten the module ``proof`` of an RTLIL text, plant a fault, run the commands, and return the log.

    Files are in `folder`, or in one that is removed.
    """
    if folder is None:
        with tempfile.TemporaryDirectory() as name:
            return _solve(text, commands, mutant, timeout_s, Path(name))
    inside = _planted_input(text, mutant) if mutant else None
    script = [
        "read_rtlil proof.il",
        "hierarchy -top proof",
        "proc",
        "flatten",
        "memory_collect",
        "memory_map",
        *(planted(mutant, "proof") if mutant and inside is None else []),
        "opt -full",
        "chformal -lower",
        "async2sync",
        "opt -full",
        "opt_clean -purge",
        *commands,
    ]
    (folder / "proof.il").write_text(inside or text)
    return run_yosys("\n".join(script) + "\n", folder, name="proof", timeout_s=timeout_s)
