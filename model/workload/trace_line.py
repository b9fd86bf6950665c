"""Lines of a trace: an action as text, and back."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hopforge.model.workload.trace import ANY_SOURCE, COLLECTIVES, DATATYPES, PROC_NULL, Action

_UNDEFINED = -333  # what SimGrid writes for any source of a communicator of the program's own
MAX_RANKS = 1 << 20
#: most elements of a message
MAX_COUNT = 1 << 48
#: most characters of a bad word that an error shows
MAX_WORD = 40

# Fields of each action in the order of the line, mandatory and optional; a trailing * is one number per rank.
_LAYOUT: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "send": (("peer", "tag", "count"), ("datatype",)),
    "isend": (("peer", "tag", "count"), ("datatype",)),
    "recv": (("peer", "tag", "count"), ("datatype",)),
    "irecv": (("peer", "tag", "count"), ("datatype",)),
    "sendRecv": (("count", "peer", "recv_count", "source"), ("datatype", "recv_datatype")),
    "wait": (("source", "peer", "tag"), ()),
    "test": (("source", "peer", "tag"), ()),
    "barrier": ((), ()),
    "bcast": (("count",), ("root", "datatype")),
    "reduce": (("count", "amount"), ("root", "datatype")),
    "allreduce": (("count", "amount"), ("datatype",)),
    "alltoall": (("count", "recv_count"), ("datatype", "recv_datatype")),
    "alltoallv": (("count", "counts*", "recv_count", "recv_counts*"), ("datatype", "recv_datatype")),
    "gather": (("count", "recv_count"), ("root", "datatype", "recv_datatype")),
    "gatherv": (("count", "recv_counts*"), ("root", "datatype", "recv_datatype")),
    "scatter": (("count", "recv_count"), ("root", "datatype", "recv_datatype")),
    "scatterv": (("counts*", "recv_count"), ("root", "datatype", "recv_datatype")),
    "allgather": (("count", "recv_count"), ("datatype", "recv_datatype")),
    "allgatherv": (("count", "recv_counts*"), ("datatype", "recv_datatype")),
    "reducescatter": (("counts*", "amount"), ("datatype",)),
    "scan": (("count", "amount"), ("datatype",)),
    "exscan": (("count", "amount"), ("datatype",)),
    "compute": (("amount",), ()),
    "sleep": (("amount",), ()),
    "finalize": ((), ()),
}
_TEXT = {
    "init": (0, 1), "comm_size": (0, 9), "comm_split": (0, 9), "comm_dup": (0, 9), "waitall": (0, 1),
    "location": (2, 2), "communicator": (2, 1 + MAX_RANKS),
}


def format_action(action: Action) -> str:
    """Return the line of an action without its rank; reading it gives the action again."""
    if action.name in _TEXT:
        return f"{action.name} {action.text}".rstrip()
    mandatory, optional = _LAYOUT[action.name]
    words = [action.name + (f"@{action.communicator}" if action.communicator else "")]
    for key in mandatory:
        value = getattr(action, key.rstrip("*"))
        words += map(str, value) if key.endswith("*") else [_number(value)]
    tail = [getattr(action, key) for key in optional]
    while tail and tail[-1] == -2:
        tail.pop()
    return " ".join(words + [str(value) for value in tail])


def parse_action(words: Sequence[str], ranks: int, communicators: Mapping[int, tuple[int, ...]]) -> Action:
    """Return the action of the words of a line without its rank.

    Raises
    ------
    ValueError
        They are none that `ranks` ranks with these communicators can do.
    """
    if not words:
        raise ValueError("expected an action after the rank")
    name, arguments = words[0], words[1:]
    if name in _TEXT:
        low, high = _TEXT[name]
        if not low <= len(arguments) <= high:
            raise ValueError(f"{name} needs {_range(low, high)} arguments, not {len(arguments)}")
        return Action(name, text=" ".join(arguments))
    name, at_sign, place = name.partition("@")
    if name not in _LAYOUT:
        raise ValueError(f"unknown action {shown(name)} (known: {', '.join(sorted((*_LAYOUT, *_TEXT)))})")
    number = 0
    if at_sign:
        if name not in COLLECTIVES:
            raise ValueError(f"{name} has no communicator: collectives have")
        number = int(place) if place.isascii() and place.isdigit() and len(place) <= MAX_WORD else 0
        if number not in communicators:
            raise ValueError(f"{name}: no line says which ranks communicator {shown(place)} has")
        ranks = len(communicators[number])
    mandatory, optional = _LAYOUT[name]
    need = sum(ranks if key.endswith("*") else 1 for key in mandatory)
    most = need + len(optional) + (ranks if name == "allgatherv" else 0)  # displacements may follow
    if not need <= len(arguments) <= most:
        raise ValueError(f"{name} needs {_range(need, most)} arguments on {ranks} ranks, not {len(arguments)}")
    if name in ("gather", "scatter") and len(arguments) == 4:
        arguments = [arguments[0], "0", *arguments[1:]]  # SimGrid leaves out a receive count of 0
    fields: dict[str, Any] = {"communicator": number}
    at = 0
    for key in mandatory:
        if key.endswith("*"):
            fields[key[:-1]] = tuple(_count(key[:-1], word) for word in arguments[at:at + ranks])
            at += ranks
        else:
            fields[key] = _field(key, arguments[at], ranks, name)
            at += 1
    for key, word in zip(optional, arguments[at:], strict=False):
        fields[key] = _field(key, word, ranks, name)
    return Action(name, **fields)


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def _float(key: str, word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        raise ValueError(f"{key} must be a number, not {word!r}") from None
    if not math.isfinite(value):
        raise ValueError(f"{key} must be finite, not {word!r}")
    return value


def _count(key: str, word: str) -> int:
    value = int(word) if word.isdigit() else math.trunc(_float(key, word))  # SimGrid takes 5e8 too
    if value < 0:
        raise ValueError(f"{key} must not be negative, not {word}")
    if value > MAX_COUNT:
        raise ValueError(f"{key} must be at most {MAX_COUNT}, not {word}")
    return value


def _amount(word: str, name: str) -> float:
    value = _float("amount", word)
    if value < 0 and name in ("compute", "sleep"):
        raise ValueError(f"amount must not be negative, not {word}")
    return value


def _field(key: str, word: str, ranks: int, name: str) -> int | float:
    if key == "amount":
        return _amount(word, name)
    if key in ("count", "recv_count"):
        # a receive may have a negative size: unknown to the receiver
        return math.trunc(_float(key, word)) if name in ("recv", "irecv") and word[:1] == "-" else _count(key, word)
    try:
        value = int(word)
    except ValueError:
        raise ValueError(f"{key} must be a whole number, not {word!r}") from None
    if key in ("datatype", "recv_datatype"):
        if value not in DATATYPES:
            raise ValueError(f"unknown datatype {value} (SimGrid numbers them -1 to {max(DATATYPES)})")
    elif key == "tag":
        if not -(1 << 31) <= value < 1 << 31:
            raise ValueError(f"tag must be from -2147483648 to 2147483647, not {shown(word)}")
    elif key == "root":
        if not 0 <= value < ranks:
            raise ValueError(f"root {value} is not one of the {ranks} ranks")
    elif key in ("peer", "source"):
        if value == _UNDEFINED and name in ("recv", "irecv", "wait", "test", "sendRecv"):
            value = ANY_SOURCE
        wild = (ANY_SOURCE, PROC_NULL) if name in ("recv", "irecv", "wait", "test", "sendRecv") else (PROC_NULL,)
        if not 0 <= value < ranks and value not in wild:
            raise ValueError(f"rank {value} is not one of the {ranks} ranks")
    return value


def parse_communicator(words: Sequence[str], ranks: int) -> tuple[int, tuple[int, ...]]:
    """Return number and ranks of ``communicator NUMBER RANK …``.

    Raises
    ------
    ValueError
        It names no ranks, unknown ones, or one twice.
    """
    if len(words) < 3:
        raise ValueError(f"communicator needs a number and the ranks in it, not {len(words) - 1} arguments")
    for word in words[1:]:
        if not (word.isascii() and word.isdigit() and len(word) <= MAX_WORD):
            raise ValueError(f"communicator needs whole numbers, not {shown(word)}")
    number, *members = map(int, words[1:])
    if number == 0:
        raise ValueError("communicator 0 is MPI_COMM_WORLD; others begin at 1")
    for member in members:
        if member >= ranks:
            raise ValueError(f"rank {member} is not one of the {ranks} ranks")
    if len(set(members)) != len(members):
        raise ValueError(f"communicator {number} holds a rank twice")
    return number, tuple(members)


def shown(word: str) -> str:
    """Return a word as an error shows it."""
    return repr(word if len(word) <= MAX_WORD else f"{word[:MAX_WORD]}…")


def _number(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    short = f"{value:g}"
    return short if float(short) == value else repr(value)
