"""What lookup engines of all depths have in common: ports, key and index functions, TCAM, control."""

from collections.abc import Callable

from amaranth.hdl import Array, Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hopforge.hw.cache.epoch import EpochControl
from hopforge.hw.cache.pipelined_cache import PipelinedCache
from hopforge.hw.cache.routing_cache import RoutingCache
from hopforge.hw.cache.second_level import SecondLevel
from hopforge.hw.keys.lag_member import LagMember
from hopforge.hw.keys.reduction_parameters import ReductionParameters
from hopforge.hw.keys.reduction_setup import ReductionSetup
from hopforge.hw.lookup.csr import ControlStatus
from hopforge.hw.lookup.mshr import MshrFile
from hopforge.hw.lookup.pipelined_mshr import PipelinedMshrFile
from hopforge.hw.lookup.tcam import Tcam
from hopforge.hw.parts.sram import Sram
from hopforge.model.lookup.csr import CSR_ADDR_BITS, WORD_BITS
from hopforge.model.lookup.params import MEMBER_BITS, LookupParams
from hopforge.model.numbers.crc import crc_matrix
from hopforge.model.numbers.skew_matrices import skew_matrices


def lookup_ports(params: LookupParams) -> dict[str, wiring.Member]:
    """Return the ports of a `Lookup`: requests, responses, and what software and a TCAM outside use."""
    p = params
    ports = {
        "req_valid": In(1),
        "req_ready": Out(1),
        "req_dst": In(p.address_bits),
        "req_tag": In(p.request_tag_bits),
        "resp_valid": Out(1),
        "resp_ready": In(1),
        "resp_tag": Out(p.request_tag_bits),
        "resp_output": Out(p.output_bits),
        "resp_match": Out(1),
        "resp_hit": Out(1),
        "csr_addr": In(CSR_ADDR_BITS),
        "csr_we": In(1),
        "csr_re": In(1),
        "csr_wdata": In(WORD_BITS),
        "csr_rdata": Out(WORD_BITS),
        "link_change": In(1),
    }
    if p.tcam_kind == "external":
        ports |= {
            "tcam_req_valid": Out(1),
            "tcam_req_ready": In(1),
            "tcam_req_id": Out(p.mshr_id_bits),
            "tcam_req_dst": Out(p.address_bits),
            "tcam_resp_valid": In(1),
            "tcam_resp_id": In(p.mshr_id_bits),
            "tcam_resp_match": In(1),
            "tcam_resp_output": In(p.output_bits),
        }
    if p.protection is not None:
        ports["line_error"] = Out(1)
    return ports


class LookupBase(wiring.Component):
    """What engines of all depths have in common: ports, key and index functions, TCAM, control.

    Parameters
    ----------
    params : LookupParams
        The engine; its own checks name what is wrong.
    """

    req_valid: Signal
    req_ready: Signal
    req_dst: Signal
    req_tag: Signal
    resp_valid: Signal
    resp_ready: Signal
    resp_tag: Signal
    resp_output: Signal
    resp_match: Signal
    resp_hit: Signal
    tcam_req_valid: Signal
    tcam_req_ready: Signal
    tcam_req_id: Signal
    tcam_req_dst: Signal
    tcam_resp_valid: Signal
    tcam_resp_id: Signal
    tcam_resp_match: Signal
    tcam_resp_output: Signal
    csr_addr: Signal
    csr_we: Signal
    csr_re: Signal
    csr_wdata: Signal
    csr_rdata: Signal
    link_change: Signal
    line_error: Signal

    def __init__(self, params: LookupParams, *, memory: Callable[..., Sram]):
        self.params = params
        super().__init__(lookup_ports(params))
        self.second = None if params.second_level is None else SecondLevel(params=params, memory=memory)

    @property
    def row_bits(self) -> int:
        """Width of a row number, at least 1."""
        return max(1, self.params.index_bits)

    @property
    def index_width(self) -> int:
        """Width of the index that an operation carries: one row number, or one per way."""
        return self.row_bits * (self.params.ways if self.params.skewed else 1)

    def reduction_parameters(self) -> ReductionParameters:
        """Return what is built into the node reduction."""
        p = self.params
        masks, constant = crc_matrix(p.crc, p.address_bits)
        return ReductionParameters(
            address_bits=p.address_bits,
            functions=p.functions,
            chunk_bits=p.chunk_bits,
            comparators=p.comparators,
            up_choices=("d_mod_k", "highest_mismatch"),
            max_members=p.max_members,
            crc_masks=tuple(masks),
            crc_constant=constant,
            expression=None if p.expression is None else p.expression.program,
        )

    def _line_events(self, m: Module, cache: RoutingCache | PipelinedCache) -> list[Value]:
        """Return what is counted of lines with changed bits; tell of it outside in the next cycle."""
        if self.params.protection is None:
            return []
        events: list[Value] = [cache.found_wrong]
        if self.params.protection == "secded":
            events.append(cache.found_repaired)
        m.d.sync += self.line_error.eq(Cat(events).any())
        return events

    def index_function(self) -> tuple[tuple[int, ...], int]:
        """Return the masks of the payload whose parities are the index, and the index of payload 0."""
        p = self.params
        if not p.index_bits:
            return (), 0
        if p.skewed:
            matrices = skew_matrices(p.address_bits, p.index_bits, p.ways)
            return tuple(int(mask) for matrix in matrices for mask in matrix), 0
        masks, constant = crc_matrix(p.crc, p.address_bits)
        return tuple(masks[: p.index_bits]), constant & (p.sets - 1)

    def _setup(
        self, m: Module, reduction: ReductionParameters, control: ControlStatus, *, registers: bool = False
    ) -> ReductionSetup:
        """Connect what computes the active registers to the shadows."""
        m.submodules.setup = setup = ReductionSetup(reduction, registers=registers)
        for name in reduction.shadow_layout.members:
            shadow = getattr(setup.shadow, name)
            if name == "radix":
                for digit in range(len(shadow)):
                    m.d.comb += shadow[digit].eq(getattr(control, f"radix{digit}"))
            else:
                m.d.comb += shadow.eq(getattr(control, name))
        return setup

    def _tcam(
        self,
        m: Module,
        reduction: ReductionParameters,
        control: ControlStatus,
        mshrs: MshrFile | PipelinedMshrFile,
        *,
        load: Value | None = None,
    ) -> Value:
        """TCAM inside, or its port; returns whether a row has become effective."""
        asking = mshrs if self.second is None else self._second_level(m, control, mshrs)
        return self._tcam_of(m, reduction, control, asking, load=load)

    def _second_level(
        self, m: Module, control: ControlStatus, mshrs: MshrFile | PipelinedMshrFile
    ) -> SecondLevel:  # fmt: skip
        """Put the second level between the MSHRs and the TCAM."""
        assert self.second is not None
        m.submodules.second = second = self.second
        m.d.comb += [
            second.req_valid.eq(mshrs.issue_valid),
            mshrs.issue_ready.eq(second.req_ready),
            second.req_id.eq(mshrs.issue_id),
            second.req_dst.eq(mshrs.issue_dst),
            second.req_key.eq(Array(mshrs.keys)[mshrs.issue_id]),
            second.req_fresh.eq(mshrs.entry_fresh.bit_select(mshrs.issue_id, 1)),
            second.fill_key.eq(Array(mshrs.keys)[second.fill_id]),
            second.fill_fresh.eq((mshrs.entry_fresh & ~mshrs.stale).bit_select(second.fill_id, 1)),
            mshrs.answer_valid.eq(second.resp_valid),
            mshrs.answer_id.eq(second.resp_id),
            mshrs.answer_match.eq(second.resp_match),
            mshrs.answer_output.eq(second.resp_output),
            second.enable.eq(control.active_enable),
            second.hold.eq(control.hold),
            second.invalidate.eq(mshrs.invalidate),
            second.invalidate_key.eq(mshrs.key),
        ]
        return second

    def _tcam_of(
        self,
        m: Module,
        reduction: ReductionParameters,
        control: ControlStatus,
        mshrs: MshrFile | PipelinedMshrFile | SecondLevel,
        *,
        load: Value | None,
    ) -> Value:
        """TCAM inside, or its port, for what asks it."""
        p = self.params
        if p.tcam_kind == "external":
            m.d.comb += [
                self.tcam_req_valid.eq(mshrs.issue_valid),
                mshrs.issue_ready.eq(self.tcam_req_ready),
                self.tcam_req_id.eq(mshrs.issue_id),
                self.tcam_req_dst.eq(mshrs.issue_dst),
                mshrs.answer_valid.eq(self.tcam_resp_valid),
                mshrs.answer_id.eq(self.tcam_resp_id),
                mshrs.answer_match.eq(self.tcam_resp_match),
                mshrs.answer_output.eq(self.tcam_resp_output),
            ]
            return Signal(name="no_row_changed")
        members = p.max_members > 1
        m.submodules.tcam = tcam = Tcam(
            kind=p.tcam_kind,
            rows=p.tcam_rows,
            address_bits=p.address_bits,
            output_bits=p.output_bits,
            id_bits=p.mshr_id_bits,
            latency_cycles=p.tcam_latency_cycles,
            member_bits=MEMBER_BITS if members else 0,
        )
        m.d.comb += [
            tcam.req_valid.eq(mshrs.issue_valid),
            mshrs.issue_ready.eq(tcam.req_ready),
            tcam.req_id.eq(mshrs.issue_id),
            tcam.req_dst.eq(mshrs.issue_dst),
            mshrs.answer_valid.eq(tcam.resp_valid),
            mshrs.answer_id.eq(tcam.resp_id),
            mshrs.answer_match.eq(tcam.resp_match),
            mshrs.answer_output.eq(tcam.resp_output),
            tcam.commit.eq(control.tcam_commit),
            tcam.commit_row.eq(control.tcam_row),
            tcam.commit_value.eq(control.tcam_value),
            tcam.commit_mask.eq(control.tcam_mask),
            tcam.commit_output.eq(control.tcam_output),
            tcam.commit_valid.eq(control.tcam_valid),
            control.tcam_busy.eq(tcam.busy),
            control.tcam_overrun.eq(tcam.overrun),
        ]
        if members:
            m.submodules.tcam_member = member = LagMember(reduction=reduction, loaded=load is not None)
            m.d.comb += [
                tcam.commit_lag.eq(control.tcam_lag),
                member.dst.eq(tcam.member_dst),
                member.members.eq(control.members),
                member.member_hash.eq(control.member_hash),
                tcam.member.eq(member.member),
            ]
            if load is not None:
                m.d.comb += member.load.eq(load)
        return tcam.effective

    def _control(
        self,
        m: Module,
        control: ControlStatus,
        epoch: EpochControl,
        mshrs: MshrFile | PipelinedMshrFile,
        row_changed: Value,
    ) -> None:
        """Connect bus, flushes and what software sees of them."""
        for name in ("csr_addr", "csr_we", "csr_re", "csr_wdata", "link_change"):
            m.d.comb += getattr(control, name).eq(getattr(self, name))
        m.d.comb += [
            self.csr_rdata.eq(control.csr_rdata),
            epoch.request.eq(control.flush_request | (row_changed & control.enable)),
            mshrs.flush.eq(epoch.event),
            mshrs.hold.eq(control.hold),
            control.epoch.eq(epoch.epoch),
        ]
        if self.second is None:
            m.d.comb += [control.scrub_active.eq(epoch.active), control.flush_wait.eq(epoch.flush_wait)]
        else:
            m.d.comb += [
                self.second.event.eq(epoch.event),
                control.scrub_active.eq(epoch.active | self.second.scrub_active),
                control.flush_wait.eq(epoch.flush_wait | self.second.flush_wait),
            ]

    def _second_events(self) -> Value:
        """Return the events of a second level that are counted."""
        return Cat() if self.second is None else Cat(self.second.found, self.second.missed)

    def _invalidated(self, first: Value) -> Value:
        """Return whether an invalidation is done; `first`: at the first level."""
        return first if self.second is None else self.second.invalidate_done
