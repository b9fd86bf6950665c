"""What an access by a standard bus does, one after the other (docs/definitions/register-buses.md).

Values that the hardware sets itself are not known here; `Answer.known` says which bits are.
"""

from typing import Literal, NamedTuple

from hopforge.model.router.bus_space import AddressSpace, Place
from hopforge.model.router.partial_write import byte_mask, can_be_partial, writable_bytes

__all__ = ["Answer", "BusGolden", "NativeWrite", "Reply"]

Reply = Literal["ok", "missing", "refused"]


class NativeWrite(NamedTuple):
    """A write on the native bus: word address and word."""

    address: int
    data: int


class Answer(NamedTuple):
    """Answer to an access.

    Attributes
    ----------
    reply : str
        ``ok``; ``missing``: no register; ``refused``: a partial write that cannot be.
    data : int
        Word that is read; 0 else.
    known : int
        Bits of `data` that are known here.
    write : NativeWrite or None
        What is written on the native bus.
    """

    reply: Reply
    data: int = 0
    known: int = 0xFFFF_FFFF
    write: NativeWrite | None = None


class BusGolden:
    """Registers as a bus sees them, from reset on.

    Parameters
    ----------
    space : AddressSpace
        What the bus reaches.
    """

    def __init__(self, space: AddressSpace) -> None:
        self.places: dict[int, Place] = {place.address: place for place in space.places()}
        self.kept = {address: place.register.reset for address, place in self.places.items()}

    def read(self, address: int) -> Answer:
        """Return the answer to a read of a word."""
        place = self.places.get(address)
        if place is None:
            return Answer("missing")
        if not place.readable:
            return Answer("ok")
        own = sum(field.mask for field in place.register.fields if field.access in ("ro", "rc", "w1c"))
        return Answer("ok", self.kept[address] & ~own, 0xFFFF_FFFF & ~own)

    def write(self, address: int, data: int, strobes: int) -> Answer:
        """Return the answer to a write of the bytes with `strobes`, and keep what is kept."""
        place = self.places.get(address)
        if place is None:
            return Answer("missing")
        register = place.register
        needed = writable_bytes(register)
        if not needed & strobes:
            return Answer("ok")
        word = data & byte_mask(strobes)
        if needed & ~strobes:
            if not can_be_partial(register, readable=place.readable):
                return Answer("refused")
            word |= self.kept[address] & register.write_mask & ~byte_mask(strobes)
        self._put(place, word)
        return Answer("ok", write=NativeWrite(address, word))

    def link_change(self) -> None:
        """Do what a pulse on ``link_change`` does: a topology change in every engine."""
        for place in self.places.values():
            self._topology_change(place)

    def _put(self, place: Place, word: int) -> None:
        """Write a word on the native bus."""
        for target in self._targets(place):
            mask = target.register.write_mask
            self.kept[target.address] = (self.kept[target.address] & ~mask) | (word & mask)
            names = [field.name for field in target.register.fields]
            if "topology_change" in names and target.register.decode(word)["topology_change"]:
                engine = target.name.removesuffix("CTRL")
                for other in self.places.values():
                    if other.name in (f"{engine}CTRL", f"{engine}MODE"):
                        self._topology_change(other)

    def _targets(self, place: Place) -> list[Place]:
        """Return the registers that a write to `place` reaches: in a router some go to all lookup engines."""
        page, _, name = place.name.rpartition(".")
        everyone = page == "ENGINES" or (not page and name.startswith("OWN_"))
        engines = [
            other
            for other in self.places.values()
            if everyone and other.name.startswith("ENGINE") and other.readable and other.name.endswith(f".{name}")
        ]
        return [place, *engines]

    def _topology_change(self, place: Place) -> None:
        for field in place.register.fields:
            engine = any(other.name == "topology_change" for other in place.register.fields)
            if (field.name == "enable" and engine) or field.name == "mode":
                self.kept[place.address] &= ~field.mask
