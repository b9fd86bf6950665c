"""Which packet an event of the simulator's log is about: a listed one, or a reply."""

import numpy as np
from numpy.typing import NDArray

from hopforge.model.network.core.kinds import RECEIVED, TAIL
from hopforge.model.network.parts.class_sources import CLASS_NUMBER_BITS
from hopforge.model.network.parts.replies import REPLY_NUMBER
from hopforge.model.network.parts.reply_arrays import Replies
from hopforge.model.network.settings import Script

#: of a packet, below its source
NUMBER_BITS = 40


class LoggedPackets:
    """Packets of a run with a list: first the listed ones, then the replies by host, in the order of their requests.

    Parameters
    ----------
    script : Script
        The list, by host.
    rows : ndarray, int64[event, 6]
        The log.
    replies : Replies, optional
        To each of them.
    script_class : ndarray, optional
        Class of traffic of each listed packet; the list then is by host and class.

    Attributes
    ----------
    script : Script
        The list.
    asked : ndarray, int64[reply]
        The request of each reply.
    first : ndarray, int64[packet + 1]
        Flits of all packets before.
    """

    def __init__(
        self,
        script: Script,
        rows: NDArray[np.int64],
        replies: Replies | None,
        script_class: NDArray[np.int64] | None = None,
    ) -> None:
        self.script = script
        self._classes = 0 if script_class is None else int(script_class.max()) + 1
        hosts = np.arange(int(max(script[0].max(), script[2].max())) + 2)
        self._before = np.searchsorted(script[0], hosts)
        if script_class is not None:
            sources = np.arange(len(hosts) * self._classes)
            self._before = np.searchsorted(script[0] * self._classes + script_class, sources)
        self.asked = np.zeros(0, np.int64)
        if replies is not None:
            ends = (rows[:, 1] == RECEIVED) & (rows[:, 5] & TAIL != 0) & (rows[:, 4] & REPLY_NUMBER == 0)
            host = rows[ends, 2]
            self.asked = self._listed(rows[ends, 4])[np.argsort(host, kind="stable")]
            self._replies_before = np.searchsorted(np.sort(host), hosts)
        lengths = script[3] if replies is None else np.concatenate([script[3], replies.flits_of(script[3][self.asked])])
        self.first = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    @property
    def count(self) -> int:
        """Packets, replies among them."""
        return len(self.first) - 1

    def number(self, code: NDArray[np.int64]) -> NDArray[np.int64]:
        """Packet of each event, from the column with its source and number."""
        reply = code & REPLY_NUMBER != 0
        if not reply.any():
            return self._listed(code)
        found = np.empty(len(code), np.int64)
        found[~reply] = self._listed(code[~reply])
        of_host = code[reply] & REPLY_NUMBER - 1
        found[reply] = len(self.script[0]) + self._replies_before[code[reply] >> NUMBER_BITS] + of_host
        return found

    def _listed(self, code: NDArray[np.int64]) -> NDArray[np.int64]:
        source, number = code >> NUMBER_BITS, code & (1 << NUMBER_BITS) - 1
        if self._classes:
            source = source * self._classes + (number >> CLASS_NUMBER_BITS)
            number = number & (1 << CLASS_NUMBER_BITS) - 1
        return self._before[source] + number
