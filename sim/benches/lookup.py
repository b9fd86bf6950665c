"""The whole engine as a replay: random traffic with the outputs of the golden engine."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hopforge.model.lookup.fast.layout import INPUTS, OUTPUTS
from hopforge.model.lookup.params import LookupParams
from hopforge.sim.drive.replay import Output, Replay, as_words
from hopforge.sim.drive.stimulus import Stimulus
from hopforge.sim.drive.stimulus_operations import OPERATION_COLUMNS

_GATES = {
    **dict.fromkeys(("resp_tag", "resp_output", "resp_match", "resp_hit"), "resp_valid"),
    **dict.fromkeys(("tcam_req_id", "tcam_req_dst"), "tcam_req_valid"),
}


def lookup_replay(stimulus: Stimulus) -> Replay:
    """Return the cycles of `stimulus` for the ports of `hw.lookup.shallow.Lookup`.

    The ports of the TCAM exist only if it is external; what a response holds counts only while it is valid.
    """
    return engine_replay(stimulus.params, stimulus.inputs, stimulus.outputs)


def observed_replay(stimulus: Stimulus) -> Replay:
    """Return the same for `sim.cosim.observed_engine.ObservedEngine`, which shows what the engine works on, too."""
    plain = lookup_replay(stimulus)
    valid, *carried = OPERATION_COLUMNS
    return replace(
        plain,
        outputs=(*plain.outputs, Output(valid), *(Output(name, valid) for name in carried)),
        expected=np.hstack([plain.expected, as_words(stimulus.operations)]),
    )


def engine_replay(
    params: LookupParams, inputs: NDArray[np.int64], outputs: NDArray[np.int64], more: tuple[str, ...] = ()
) -> Replay:
    """Return cycles of an engine: `inputs` has a column for each of `INPUTS` and of the ports `more`."""
    ins = _ports(params, (*INPUTS, *more))
    outs = _ports(params, OUTPUTS)
    return Replay(
        inputs=ins,
        outputs=tuple(Output(name, _GATES.get(name)) for name in outs),
        driven=as_words(inputs[:, [(*INPUTS, *more).index(name) for name in ins]]),
        expected=as_words(outputs[:, [OUTPUTS.index(name) for name in outs]]),
    )


def _ports(params: LookupParams, names: tuple[str, ...]) -> tuple[str, ...]:
    external, checked = params.tcam_kind == "external", params.protection is not None
    return tuple(
        name
        for name in names
        if (external or not name.startswith("tcam_")) and (checked or name != "line_error")
    )
