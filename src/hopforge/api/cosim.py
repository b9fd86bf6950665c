"""Verilog beside its golden model: what `hopforge cosim` compares."""

import os
import tempfile
from pathlib import Path

from hopforge.api.configuration import Configuration, configuration
from hopforge.api.errors import number_within
from hopforge.api.progress import Progress, shown
from hopforge.api.result import Call, called, check_folder, html_rows, refuse_unknown
from hopforge.model.errors import UserError
from hopforge.model.seeds import MOST_SEED
from hopforge.sim.cosim.parts import PARTS, Report, cosim_part
from hopforge.sim.drive.runner import simulator_name

__all__ = ["CosimResult", "cosim"]


class CosimResult:
    """What a co-simulation compared."""

    def __init__(self, call: Call, report: Report) -> None:
        self._call, self._passed, self._rows = call, report.passed, list(report.rows())

    @property
    def configuration(self) -> Configuration:
        """What was compared."""
        return self._call.configuration

    @property
    def passed(self) -> bool:
        """Whether every output was as the golden model's in every cycle."""
        return self._passed

    @property
    def rows(self) -> list[tuple[str, str]]:
        """What the command shows on the terminal: subject and words."""
        return list(self._rows)

    def __repr__(self) -> str:
        """Return what the command shows."""
        return "\n".join([f"<{self._call.words}>", *(f"{subject}: {words}" for subject, words in self._rows)])

    def _repr_html_(self) -> str:
        return html_rows(self._rows)


def cosim(
    config: Configuration | str | os.PathLike[str],
    part: str = "lookup",
    *,
    simulator: str | None = None,
    lookups: int | None = None,
    load: float | None = None,
    cycles: int | None = None,
    variants: int | None = None,
    seed: int | None = None,
    faults: int | None = None,
    waves: bool = False,
    output: str | os.PathLike[str] | None = None,
    progress: Progress = True,
) -> CosimResult:
    """Compare Verilog with its golden model, every output in every cycle, as ``hopforge cosim``.

    Parameters
    ----------
    config : Configuration or str or Path
        What is compared, or its file.
    part : str
        lookup (the engine), router, network, q_table, service_host, collectives or rule_cache.
    simulator : str, optional
        icarus or verilator; by default the configuration's.
    lookups, faults : int, optional
        Parts lookup and rule_cache: requests; part lookup: bits of its lines that are inverted, one after another.
    load : float, optional
        Part network: flits per host and cycle.
    cycles : int, optional
        Other parts: cycles with traffic.
    variants : int, optional
        Parts lookup and router: as many, drawn at random.
    seed : int, optional
        Of the traffic; by default the configuration's.
    waves : bool
        Record all signals; needs `output`.
    output : str or Path, optional
        Folder for Verilog, reports and waveforms; without it nothing is kept.
    progress : bool or callable
        A bar on a terminal and in Jupyter, or a function that is called with (done, in all).

    Returns
    -------
    CosimResult
        A difference is no exception: `passed` is false.

    Raises
    ------
    UserError
        The configuration or the options are no good for it, or a simulator is missing.
    """
    if part not in PARTS:
        refuse_unknown("part", str(part), PARTS)
    if waves and output is None:
        raise UserError("waves needs output, the folder in which they are kept")
    lookups, cycles = number_within("lookups", lookups, 1), number_within("cycles", cycles, 1)
    variants, faults = number_within("variants", variants, 1), number_within("faults", faults, 1)
    load = number_within("load", load, 0.0, 1.0)
    seed = number_within("seed", seed, 0, MOST_SEED)
    chosen = None if simulator is None else simulator_name(simulator)
    options = {"lookups": lookups, "load": load, "cycles": cycles, "variants": variants, "faults": faults}
    kept = check_folder(output)
    with (
        called(
            configuration(config), f"cosim --part {part}", "cosim", part=part, simulator=simulator, **options, seed=seed
        ) as call,
        tempfile.TemporaryDirectory(prefix="hopforge-") as scratch,
        shown(progress, "cycles") as advance,
    ):
        report = cosim_part(
            part, call.config, simulator=chosen,
            given={name: value for name, value in options.items() if value is not None},
            seed=seed, waves=waves, output=Path(scratch) if kept is None else kept, progress=advance,
        )  # fmt: skip
        found = CosimResult(call, report)
    return found
