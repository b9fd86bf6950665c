"""Accesses by hand: what a partial write keeps, what is refused, what reaches several registers."""

import pytest

from hopforge.model.lookup.csr import csr_map
from hopforge.model.lookup.params import LookupParams
from hopforge.model.router.bus_golden import BusGolden
from hopforge.model.router.bus_space import lookup_space, router_space
from hopforge.model.router.csr import address_space
from hopforge.model.router.params import Route, RouterParams
from hopforge.model.router.partial_write import can_be_partial, writable_bytes

ENGINE = LookupParams(address_bits=40, tcam_kind="sram", tcam_latency_cycles=3)
ROUTER = RouterParams(ports=3, vcs=2, buffer_flits=2, rc="lookup", lookup=ENGINE, address_bits=40, width_bits=96)


@pytest.mark.parametrize("params", [
    ROUTER, RouterParams(ports=4, vcs=1, buffer_flits=2, routes=(Route(1), Route(2)), address_bits=1),
])  # fmt: skip
def test_the_space_of_a_router_is_its_address_space(params: RouterParams) -> None:
    space = router_space(params)
    places = [place[:3] for place in space.places()]
    own = len(list(space.interrupts.places()))
    assert places[:-own] == list(address_space(params))
    assert [place[0] for place in places[-own:]] == [0x4000, 0x4001, 0x4002]


@pytest.mark.parametrize(("kind", "sources"), [
    ("sram", ["drop", "overrun", "link_change"]), ("flops", ["drop", "link_change"]),
])  # fmt: skip
def test_interrupts_of_an_engine_lie_above_its_registers(kind: str, sources: list[str]) -> None:
    space = lookup_space(LookupParams(tcam_kind=kind, tcam_latency_cycles=2))
    *registers, status, enable, clear = space.places()
    assert [place.register for place in registers] == list(csr_map(LookupParams(tcam_kind=kind, tcam_latency_cycles=2)))
    assert (status.address, enable.address, clear.address) == (0x80, 0x81, 0x82)
    assert [field.name for field in status.register.fields] == sources
    every = ("drop", "overrun", "link_change")
    assert [field.lsb for field in clear.register.fields] == [every.index(source) for source in sources]


def test_bytes_that_can_be_written() -> None:
    registers = csr_map(ENGINE)
    assert writable_bytes(registers["CTRL"]) == 0b0001
    assert writable_bytes(registers["MODE"]) == 0b0111
    assert writable_bytes(registers["OWN_HI"]) == 0b0001
    assert writable_bytes(registers["TCAM_WRITE"]) == 0b1111
    assert writable_bytes(registers["STATUS"]) == 0
    assert can_be_partial(registers["MODE"], readable=True)
    assert not can_be_partial(registers["MODE"], readable=False)
    assert not can_be_partial(registers["TCAM_WRITE"], readable=True)


def test_an_engine() -> None:
    golden = BusGolden(lookup_space(ENGINE))
    assert golden.read(0x04).data == 1 << 16  # MODE.members
    assert golden.write(0x04, 0xFFFF_FFFF, 0b0010).write == (0x04, 0x0001_FF00)
    assert golden.read(0x04).data == 0x0001_1100  # of byte 1 up_choice and member_hash are there
    assert golden.write(0x36, 0, 0b0111).reply == "refused"  # TCAM_WRITE
    assert golden.write(0x36, 0, 0b1111).write == (0x36, 0)
    assert golden.write(0x03, 5, 0b1111) == golden.write(0x02, 1, 0b1110)  # nothing there to write
    assert golden.write(0x02, 1, 0b1110).write is None
    assert golden.read(0x7F).reply == golden.write(0x83, 0, 15).reply == "missing"
    golden.write(0x02, 1, 15)
    golden.write(0x04, 3, 0b0001)
    assert golden.read(0x02).data == 1
    golden.link_change()
    assert golden.read(0x02).data == 0
    assert golden.read(0x04).data == 0x0001_1100


def test_a_router() -> None:
    golden = BusGolden(router_space(ROUTER))
    golden.write(0x07, 0x5A, 0b0001)  # OWN_HI, of all
    assert [golden.read(0x200 + 0x80 * port + 0x06).data for port in range(3)] == [0x5A] * 3
    assert golden.write(0x104, 0, 0b0001).reply == "refused"  # MODE of all: none of them can be read there
    golden.write(0x104, 0x0002_0001, 0b0111)
    golden.write(0x282, 0b101, 0b0001)  # a topology change of engine 1; it beats enable
    assert [golden.read(0x200 + 0x80 * port + 0x04).data for port in range(3)] == [0x2_0001, 0x2_0000, 0x2_0001]
    assert golden.read(0x282).data == 0
    assert golden.read(0x103).reply == "missing"  # STATUS of all
