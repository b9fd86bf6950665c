"""One router as a replay: random traffic with the outputs of the golden router."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hopforge.model.lookup.fast.layout import INPUTS, OUTPUTS
from hopforge.model.router.params import RouterParams
from hopforge.sim.drive.replay import WORD_BITS, Output, Replay
from hopforge.sim.drive.router_traffic import (
    C_CLEAR,
    I_CREDIT_VALID,
    I_CREDIT_VC,
    I_DATA,
    I_VALID,
    O_CREDIT_VALID,
    O_CREDIT_VC,
    O_DATA,
    O_DROPPED,
    O_DROPS,
    O_VALID,
    RouterStimulus,
)

__all__ = ["router_replay"]

_Column = tuple[str, str | None, NDArray[np.uint64]]  # port, its gate, a word of it in every cycle


def router_replay(stimulus: RouterStimulus) -> Replay:
    """Return the cycles of `stimulus` for the ports of `hw.router.router.Router`.

    A flit, the VC of a credit and what a lookup engine asks the TCAM count only while they are valid.
    """
    ins = [*_control(stimulus)]
    outs: list[_Column] = []
    for port in range(stimulus.params.ports):
        ins += _inputs(stimulus, port)
        outs += _outputs(stimulus, port)
    for engine in range(stimulus.params.engines):
        ins += _engine(stimulus.params, f"control__{engine}", INPUTS, stimulus.engine_inputs[:, engine])
        outs += _engine(stimulus.params, f"control__{engine}", OUTPUTS, stimulus.engine_outputs[:, engine])
    dropped = stimulus.outputs[:, :, O_DROPPED] << np.arange(stimulus.params.ports)
    outs.append(("dropped", None, _bits(dropped.sum(axis=1))))
    return Replay(
        inputs=tuple(name for name, _, _ in ins),
        outputs=tuple(Output(name, gate) for name, gate, _ in outs),
        driven=np.stack([words for _, _, words in ins], axis=1),
        expected=np.stack([words for _, _, words in outs], axis=1),
    )


def _control(stimulus: RouterStimulus) -> Iterator[_Column]:
    for name, words in zip(("enable", "clear_drops"), stimulus.control.T, strict=True):
        yield name, None, _bits(words)


def _inputs(stimulus: RouterStimulus, port: int) -> Iterator[_Column]:
    rows, name = stimulus.inputs[:, port], f"port__{port}"
    yield f"{name}__in_valid", None, _bits(rows[:, I_VALID])
    for words in flit_words(stimulus.params, rows[:, I_VALID + 1 : I_VALID + 3], rows[:, I_DATA:]):
        yield f"{name}__in_flit", None, words
    yield f"{name}__out_credit_valid", None, _bits(rows[:, I_CREDIT_VALID])
    yield f"{name}__out_credit_vc", None, _bits(rows[:, I_CREDIT_VC])


def _outputs(stimulus: RouterStimulus, port: int) -> Iterator[_Column]:
    rows, name = stimulus.outputs[:, port], f"port__{port}"
    yield f"{name}__out_valid", None, _bits(rows[:, O_VALID])
    for words in flit_words(stimulus.params, rows[:, O_VALID + 1 : O_VALID + 3], rows[:, O_DATA:]):
        yield f"{name}__out_flit", f"{name}__out_valid", words
    yield f"{name}__in_credit_valid", None, _bits(rows[:, O_CREDIT_VALID])
    yield f"{name}__in_credit_vc", f"{name}__in_credit_valid", _bits(rows[:, O_CREDIT_VC])
    cleared = np.cumsum(stimulus.control[:, C_CLEAR])
    begun = np.where(np.r_[0, cleared[:-1]] == 0, stimulus.traffic.count_from, 0)
    yield f"{name}__drops", None, _bits(rows[:, O_DROPS] + begun & 0xFFFFFFFF)


def flit_words(params: RouterParams, label: NDArray[np.int64], data: NDArray[np.int64]) -> Iterator[NDArray[np.uint64]]:
    """Yield the words of flits: kind, VC, data from bit 0 on (`hw.ports.input_ports.flit_layout`)."""
    shift = 2 + max(1, (params.vcs - 1).bit_length())
    below = _bits(label[:, 0]) | _bits(label[:, 1]) << np.uint64(2)
    for at in range(data.shape[1]):
        word = _bits(data[:, at])
        yield below | word << np.uint64(shift)
        below = word >> np.uint64(WORD_BITS - shift)
    if shift + params.width_bits > WORD_BITS * data.shape[1]:
        yield below


def _engine(params: RouterParams, name: str, ports: tuple[str, ...], rows: NDArray[np.int64]) -> Iterator[_Column]:
    assert params.lookup is not None
    external, checked = params.lookup.tcam_kind == "external", params.lookup.protection is not None
    for column, port in enumerate(ports):
        inside = port.startswith(("req_", "resp_")) or (port == "line_error" and not checked)
        if not inside and (external or not port.startswith("tcam_")):
            gate = f"{name}__tcam_req_valid" if port in ("tcam_req_id", "tcam_req_dst") else None
            yield f"{name}__{port}", gate, _bits(rows[:, column])


def _bits(words: NDArray[np.int64]) -> NDArray[np.uint64]:
    return np.ascontiguousarray(words, np.int64).view(np.uint64)
