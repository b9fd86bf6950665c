"""Reads and writes of BookSim 2 (`use_read_write`) as requests and replies of section `traffic`."""

from typing import Any, NamedTuple

from hopforge.sim.booksim.keys import Settings, items

_MOST_FLITS = 65535
_KINDS = ("read_request", "read_reply", "write_request", "write_reply")
_VCS = tuple(f"{kind}_{end}_vc" for kind in _KINDS for end in ("begin", "end"))
_SIZES = tuple(f"{kind}_size" for kind in _KINDS)
_SUBNETS = tuple(f"{kind}_subnet" for kind in _KINDS)


class ReadsWrites(NamedTuple):
    """Traffic of reads and writes.

    Attributes
    ----------
    traffic : dict
        Keys of section `traffic`: lengths of requests, and `reply`.
    request_flits : float
        Mean length of a request.
    counted_flits : float
        Length of a packet by which BookSim divides rates in flits.
    """

    traffic: dict[str, Any]
    request_flits: float
    counted_flits: float


def asked(settings: Settings) -> bool:
    """Whether the packets of a configuration are reads and writes."""
    classes = settings.whole("classes")
    entries = _entries(settings, "use_read_write")[: max(classes, 1)]
    if not all(each.isdecimal() for each in entries):
        settings.refuse("use_read_write", "must be one whole number for each class")
    found = any(int(each[:9]) for each in entries) if entries else settings.at_least("use_read_write", 0) != 0
    if found and classes != 1:
        settings.refuse("use_read_write", "hopforge has requests and replies without other classes of traffic only")
    return found


def say_without_effect(settings: Settings) -> None:
    """Say that nothing reads the keys about reads and writes."""
    settings.no_effect("no reads and writes", "write_fraction", *_VCS, *_SIZES, *_SUBNETS)


def routed_vcs(settings: Settings) -> int:
    """Virtual channels among which the routing function chooses."""
    vcs = settings.whole("num_vcs")
    return vcs // 2 if asked(settings) and _vcs(settings) == "own" else vcs


def translate_reads_writes(settings: Settings) -> ReadsWrites:
    """Translate lengths and virtual channels of reads and writes.

    Raises
    ------
    BooksimError
        What hopforge's requests and replies cannot be, by its key.
    """
    settings.no_effect("reads and writes have lengths of their own", "packet_size", "packet_size_rate")
    if settings.text("routing_function") == "ugal_pni":
        settings.refuse("routing_function", "virtual channels by destination are not for reads and writes in hopforge")
    for key in _SUBNETS:
        settings.must_be(key, 0, "hopforge has one physical network")
    share = _write_fraction(settings)
    sizes = [_size(settings, key) for key in _SIZES]
    kinds = [each for each in ((*sizes[:2], 1 - share), (*sizes[2:], share)) if each[-1]]
    (request, reply, _), (other, its_reply, _) = kinds[0], kinds[-1]
    answer: dict[str, Any] = {"flits": reply}
    lengths: dict[str, Any] = {"packet_flits": request}
    if request != other:
        lengths = {"packet_lengths": [request, other], "packet_weights": [weight for *_, weight in kinds]}
    if reply != its_reply:
        if request == other:
            settings.refuse(
                "write_request_size",
                f"reads and writes have requests of {request} flits and other replies; in hopforge the length of a "
                "request says that of its reply",
            )
        answer = {"lengths": [reply, its_reply]}
    answer |= {"delay_cycles": 0, "vcs": _vcs(settings), "sender": "shared"}
    mean = sum(flits * weight for flits, _, weight in kinds)
    return ReadsWrites({**lengths, "reply": answer}, float(mean), float(sum(sizes) // 2))


def _vcs(settings: Settings) -> str:
    """Return which virtual channels requests and replies have, as `reply.vcs` says it."""
    if settings.text("topology") == "dragonflynew":  # VC 0 and 1 by the part of the way
        settings.no_effect("routing on dragonflynew does not read it", *_VCS)
        return "shared"
    share, vcs = _write_fraction(settings), settings.whole("num_vcs")
    kinds = [kind for kind, none in (("read", share == 1), ("write", share == 0)) if not none]
    halves = {"request": (0, vcs // 2 - 1), "reply": (vcs // 2, vcs - 1)}
    found = {
        part: {_limits(settings, f"{kind}_{part}", half) for kind in kinds} for part, half in halves.items()
    }
    settings.no_effect("there are only writes" if share == 1 else "there are only reads", *(
        key for key in _VCS if key.split("_", 1)[0] not in kinds
    ))  # fmt: skip
    if found["request"] == found["reply"] == {(0, vcs - 1)}:
        return "shared"
    if vcs % 2 == 0 and found == {part: {half} for part, half in halves.items()}:
        return "own"
    settings.refuse(
        f"{kinds[0]}_request_begin_vc",
        f"in hopforge requests have virtual channels 0 to {vcs // 2 - 1} and replies {vcs // 2} to {vcs - 1}, of reads "
        f"and writes alike (num_vcs = {vcs}); or all have all",
    )


def _limits(settings: Settings, packets: str, half: tuple[int, int]) -> tuple[int, int]:
    """Return first and last virtual channel of these packets; negative ones are those of their half."""
    begin, end = (settings.whole(f"{packets}_{end}_vc") for end in ("begin", "end"))
    return half[0] if begin < 0 else begin, half[1] if end < 0 else end


def _write_fraction(settings: Settings) -> float:
    entries = _entries(settings, "write_fraction")
    try:
        share = float(entries[0]) if entries else settings.number("write_fraction")
    except ValueError:
        settings.refuse("write_fraction", "must be one number for each class")
    if not 0 <= share <= 1:
        settings.refuse("write_fraction", "must be 0 to 1")
    return share


def _size(settings: Settings, key: str) -> int:
    entries = _entries(settings, key)
    if not entries:
        return settings.at_least(key, 1, _MOST_FLITS)
    if not (entries[0].isdecimal() and len(entries[0]) < 6 and 1 <= int(entries[0]) <= _MOST_FLITS):
        settings.refuse(key, f"must be 1 to {_MOST_FLITS}")
    return int(entries[0])


def _entries(settings: Settings, key: str) -> list[str]:
    return items(settings.text(key))
