"""Stages of the lookup engine, and the shortest period of each."""

import re
from collections.abc import Mapping

__all__ = ["DEEP_STAGES", "by_stage"]

DEEP_STAGES: tuple[tuple[str, str], ...] = (
    ("A: entrance", r"keys\.entered|req_ready"),
    ("A: compare", r"keys\.compare"),
    ("A: decide", r"keys\.(partial|decided)"),
    ("A: select", r"keys\.selected"),
    ("A: hash, Q", r"keys\."),
    ("B: choose, read", r"compared|scrubbed_last|cache\..*read__"),
    ("C1: compare", r"cache\.(match|live|valid|all_live|first_dead|output\d|same_row.*|read)$|acting"),
    ("C2: answer, write", r"responses\.|resp_|cache\.|missed|miss$|may_merge|fresh|busy_before"),
    ("M: MSHRs, TCAM port", r"mshrs\.|tcam_|answer|issue|fill|id_in"),
    ("epoch", r"epoch"),
    ("registers, bus, counters", r"control\.|csr_|requested"),
    ("setup: share of three periods", r"setup|active"),
)
"""Stage of a deep engine, and names of the registers and ports in which its paths end; the first that fits counts."""


def by_stage(ends_ns: Mapping[str, float]) -> dict[str, float]:
    """Return the shortest period by stage, in the order of the stages; what belongs to none is ``others``.

    Parameters
    ----------
    ends_ns : mapping of str to float
        Shortest period by register or port, as in `hopforge.gen.synth.result.SynthResult`.

    Examples
    --------
    >>> by_stage({"keys.partial": 0.44, "keys.decided": 0.41, "epoch$7.row": 0.4})
    {'A: decide': 0.44, 'epoch': 0.4}
    """
    found: dict[str, float] = {}
    for end, period in ends_ns.items():
        stage = next((stage for stage, names in DEEP_STAGES if re.match(names, end)), "others")
        found[stage] = max(found.get(stage, 0.0), period)
    order = [stage for stage, _ in DEEP_STAGES] + ["others"]
    return {stage: found[stage] for stage in order if stage in found}
