"""Lint of generated Verilog with Verilator and slang, and the waivers that go with the files."""

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hopforge.gen.tools.slang import missing_slang, slang_findings
from hopforge.gen.tools.verilator import run_verilator

__all__ = ["WAIVERS", "LintReport", "lint_text", "waiver_file"]

WAIVERS: dict[str, str] = {
    "DECLFILENAME": "one file holds the engine and all its parts, so that only one module can have its name",
    "PROCASSINIT": "a register has its reset value also as the initial one, which FPGAs and simulators load",
    "UNUSEDSIGNAL": "bits of operands wider than what is used of them; synthesis drops them",
    "WIDTHEXPAND": "constants are written in the fewest bits; Verilog extends them with zeros, as meant",
    "WIDTHTRUNC": "a word is tested for zero with !, which is what the generator's reduction means",
    "CASEINCOMPLETE": "a default assignment stands before each case, so that nothing is left undriven",
    "UNSIGNED": "comparisons with a constant that holds always at the end of a range",
}
"""Verilator warnings that are turned off, each with its reason."""

_MESSAGE = re.compile(r"^%(Error|Warning)(?:-([A-Z0-9]+))?: (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class LintReport:
    """What Verilator and slang said.

    Parameters
    ----------
    findings : tuple of str
        Warnings and errors that are not waived; empty for clean code.
    waived : dict of str to int
        Times that each waived rule of Verilator would have fired.
    missing : str or None
        How to get slang, if it is missing and so did not look at the text.
    """

    findings: tuple[str, ...]
    waived: dict[str, int]
    missing: str | None = None


def waiver_file() -> str:
    """Text of a Verilator control file with the waivers and their reasons."""
    lines = ["`verilator_config"]
    for rule, reason in WAIVERS.items():
        lines += [f"// {reason}", f"lint_off -rule {rule}"]
    return "\n".join(lines) + "\n"


def lint_text(text: str, top: str, *, timeout_s: float = 1800) -> LintReport:
    """Run ``verilator --lint-only -Wall`` and slang, if it is there, on Verilog text.

    Parameters
    ----------
    text : str
        SystemVerilog.
    top : str
        Name of the top module.
    timeout_s : float
        Limit in seconds.

    Raises
    ------
    UserError
        If Verilator is missing, or one of the two takes too long.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / f"{top}.sv").write_text(text, encoding="utf-8")
        (path / "waivers.vlt").write_text(waiver_file())
        arguments = ["--lint-only", "-Wall", "--top-module", top]
        strict = run_verilator([*arguments, "waivers.vlt", f"{top}.sv"], path, timeout_s=timeout_s)
        plain = run_verilator([*arguments, f"{top}.sv"], path, timeout_s=timeout_s)
    findings = [f"{rule or kind}: {message}" for kind, rule, message in _MESSAGE.findall(strict.stdout)]
    if strict.returncode and not findings:
        findings.append(f"verilator: exit status {strict.returncode}: {strict.stdout.strip()[-200:]}")
    waived: dict[str, int] = {}
    for _, rule, _ in _MESSAGE.findall(plain.stdout):
        if rule in WAIVERS:
            waived[rule] = waived.get(rule, 0) + 1
    missing = missing_slang()
    if missing is None:
        findings += slang_findings(text, top, timeout_s=timeout_s)
    return LintReport(tuple(findings), waived, missing)
