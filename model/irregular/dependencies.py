"""Channel dependencies of one virtual layer, kept free of cycles while they are added (Pearce and Kelly 2006)."""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.errors import UserError
from hopforge.model.irregular.channels import ChannelList
from hopforge.model.kernel.compile import inner, kernel
from hopforge.model.kernel.heap import pop_entry, push_entry

__all__ = [
    "FREE", "MAX_LAYERS", "REFUSED", "USED", "add_dependency", "more_layers", "new_layers", "opposite_channels",
    "too_many_layers",
]  # fmt: skip

MAX_LAYERS = 64
"""Most layers that an assignment may need."""

FREE, USED, REFUSED = range(3)
"""What is known of a dependency in a layer. REFUSED is noted by the caller, who knows whether it will stay so."""


def opposite_channels(channels: ChannelList) -> NDArray[np.int32]:
    """Channel of the same link in the other direction, int32[channel].

    Examples
    --------
    >>> from hopforge.model.irregular.channels import channel_list
    >>> opposite_channels(channel_list(np.array([[1, -1], [0, 2], [1, -1]], np.int32))).tolist()
    [1, 0, 3, 2]
    """
    number = np.lexsort((channels.source, channels.target))
    return number.astype(np.int32)


@kernel
def new_layers(layers, channels, degree):  # type: ignore[no-untyped-def]
    """Make empty layers: dependencies int8[layer, channel, port of its target] and places int32[layer, channel]."""
    used = np.zeros((layers, channels, degree), np.int8)
    place = np.empty((layers, channels), np.int32)
    for layer in range(layers):
        for c in range(channels):
            place[layer, c] = c
    return used, place


@kernel
def more_layers(used, place):  # type: ignore[no-untyped-def]
    """Return what `new_layers` made with as many empty layers behind."""
    more_used, more_place = new_layers(used.shape[0], used.shape[1], used.shape[2])
    return np.concatenate((used, more_used)), np.concatenate((place, more_place))


def too_many_layers(method: str) -> UserError:
    """Return the error that `MAX_LAYERS` layers are not enough for a method (a value of ``tables.layers``)."""
    return UserError(f"tables.layers: {method} needs more than {MAX_LAYERS} layers for this table")


@inner
def _sort_by_place(chosen, count, place, heap):  # type: ignore[no-untyped-def]
    channels = len(place)
    for q in range(count):
        push_entry(heap, q, place[chosen[q]] * channels + chosen[q])
    for q in range(count):
        chosen[q] = pop_entry(heap, count - q) % channels


@inner
def add_dependency(a, b, used, place, source, target, first, opposite, mark, scratch):  # type: ignore[no-untyped-def]
    """Add the dependency of channel `a` on channel `b`; False, and nothing is changed, if that closed a cycle.

    Parameters
    ----------
    a, b : int
        Channels, b from the target of a.
    used, place : ndarray, int8[channel, port], int32[channel]
        Dependencies of the layer (`FREE`, `USED`, `REFUSED`), and a topological order of its channels.
    source, target, first : ndarray
        As in `ChannelList`.
    opposite : ndarray, int32[channel]
        As `opposite_channels` gives it.
    mark, scratch : ndarray, bool[channel], int64[3, channel]
        Working space; `mark` is False before and after.
    """
    port = b - first[target[a]]
    if used[a, port] != FREE:
        return used[a, port] == USED
    low, high = place[b], place[a]
    if low < high:
        stack, down, up = scratch[0], scratch[1], scratch[2]
        # what follows b, up to the place of a
        mark[b] = True
        stack[0], waiting, downs = b, 1, 0
        closes = False
        while waiting > 0 and not closes:
            waiting -= 1
            c = stack[waiting]
            down[downs] = c
            downs += 1
            begin = first[target[c]]
            for k in range(first[target[c] + 1] - begin):
                if used[c, k] != USED:
                    continue
                n = begin + k
                if n == a:
                    closes = True
                    break
                if not mark[n] and place[n] < high:
                    mark[n] = True
                    stack[waiting] = n
                    waiting += 1
        for q in range(downs):
            mark[down[q]] = False
        for q in range(waiting):
            mark[stack[q]] = False
        if closes:
            return False
        # what leads to a, down to the place of b
        mark[a] = True
        stack[0], waiting, ups = a, 1, 0
        while waiting > 0:
            waiting -= 1
            c = stack[waiting]
            up[ups] = c
            ups += 1
            u = source[c]
            for out in range(first[u], first[u + 1]):
                n = opposite[out]
                if used[n, c - first[u]] == USED and not mark[n] and place[n] > low:
                    mark[n] = True
                    stack[waiting] = n
                    waiting += 1
        for q in range(ups):
            mark[up[q]] = False
        # the places of both go to what leads to a first, and then to what follows b, each in the order that it had
        _sort_by_place(up, ups, place, stack)
        _sort_by_place(down, downs, place, stack)
        p, q = 0, 0
        while p < ups or q < downs:
            if q == downs or (p < ups and place[up[p]] < place[down[q]]):
                stack[p + q] = place[up[p]]
                p += 1
            else:
                stack[p + q] = place[down[q]]
                q += 1
        for p in range(ups):
            place[up[p]] = stack[p]
        for q in range(downs):
            place[down[q]] = stack[ups + q]
    used[a, port] = USED
    return True
