"""Ports of the engine."""

from typing import NamedTuple


class LookupInputs(NamedTuple):
    """Inputs of one cycle; the ``tcam_`` ones are used with an external TCAM only."""

    req_valid: int = 0
    req_dst: int = 0
    req_tag: int = 0
    resp_ready: int = 0
    csr_addr: int = 0
    csr_we: int = 0
    csr_re: int = 0
    csr_wdata: int = 0
    link_change: int = 0
    tcam_req_ready: int = 0
    tcam_resp_valid: int = 0
    tcam_resp_id: int = 0
    tcam_resp_match: int = 0
    tcam_resp_output: int = 0


class LookupOutputs(NamedTuple):
    """Outputs of one cycle; what means nothing in this cycle is 0. ``line_error``: with protection only."""

    req_ready: int = 0
    resp_valid: int = 0
    resp_tag: int = 0
    resp_output: int = 0
    resp_match: int = 0
    resp_hit: int = 0
    csr_rdata: int = 0
    line_error: int = 0
    tcam_req_valid: int = 0
    tcam_req_id: int = 0
    tcam_req_dst: int = 0
