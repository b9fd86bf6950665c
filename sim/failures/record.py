"""What a failure or repair did to a run."""

from dataclasses import dataclass


def counted(number: int, noun: str) -> str:
    """Return a number of things.

    Examples
    --------
    >>> counted(1, "message"), counted(1200, "message")
    ('1 message', '1200 messages')
    """
    return f"{number} {noun}{'s' * (number != 1)}"


@dataclass
class FailureRecord:
    """What one failure or repair did.

    Attributes
    ----------
    flits_on_links, flits_in_switches : int
        Lost because they were on a link that failed, or in a switch that failed or between it and its hosts.
    flits_of_cut_packets : int
        Lost elsewhere in the network: the rest of packets that lost a flit, or that a failed link cut in two.
    packets_lost : int
        All packets of these flits.
    packets_unsent : int
        Created at a host whose switch failed and not sent, those that it had set aside for others among them.
    packets_set_aside : int
        That stood before a failed link and were taken by a host of their switch, to be sent again.
    packets_without_host : int
        The same at a switch without hosts: dropped.
    acknowledges_lost : int
        Their flits count as those of packets do.
    messages_lost : int
        Messages of a program that lost their first packet here: they never arrive.
    stopped_cycle, empty_cycle, reprogrammed_cycle : int
        When the hosts stopped sending, the network was empty, and the new tables were in force; −1: not yet.
    """

    cycle: int
    what: str
    flits_on_links: int = 0
    flits_in_switches: int = 0
    flits_of_cut_packets: int = 0
    packets_lost: int = 0
    packets_unsent: int = 0
    packets_set_aside: int = 0
    packets_without_host: int = 0
    acknowledges_lost: int = 0
    messages_lost: int = 0
    stopped_cycle: int = -1
    empty_cycle: int = -1
    reprogrammed_cycle: int = -1

    def losses(self) -> list[str]:
        """Say what was lost, for the terminal."""
        words = []
        if self.packets_lost:
            words.append(
                f"{counted(self.packets_lost, 'packet')} lost ({counted(self.flits_on_links, 'flit')} on links, "
                f"{self.flits_in_switches} in switches, {self.flits_of_cut_packets} others of the same packets)"
            )
        words += [
            f"{counted(count, noun)} {what}"
            for count, noun, what in (
                (self.packets_unsent, "packet", "abandoned at the hosts"),
                (self.packets_set_aside, "packet", "sent again by hosts on the way"),
                (self.packets_without_host, "packet", "dropped at switches without hosts"),
                (self.acknowledges_lost, "acknowledge", "lost"),
                (self.messages_lost, "message", "lost"),
            )
            if count
        ]
        return words

    @property
    def stages(self) -> list[tuple[str, int]]:
        """What came after it, and in which cycle."""
        return [("empty", self.empty_cycle), ("new tables", self.reprogrammed_cycle)]

    @property
    def flits_lost(self) -> int:
        """All causes together."""
        return self.flits_on_links + self.flits_in_switches + self.flits_of_cut_packets
