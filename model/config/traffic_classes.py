"""Section `traffic.classes` (docs/definitions/traffic-classes.md)."""

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from hopforge.model.config.base import Problem, Section

_OTHER_COLUMNS = ("acknowledge", "message", "network", "reply", "request", "round_trip")

CLASSES_MAX = 8
"""Classes of traffic of a network."""


class TrafficClassConfig(Section):
    """A class of traffic: a source of its own at every host, and virtual channels of its own if it has `vcs`."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=32)]
    """Prefix of its columns in results."""
    share: Annotated[float, Field(gt=0, le=1)] | None = None
    """Part of the load that it offers; those of all classes that have one are 1 together."""
    load: Annotated[float, Field(ge=0, le=1)] | None = None
    """In place of `share`: flits per host and cycle, whatever the load of the run is."""
    vcs: Annotated[int, Field(ge=1, le=16)] | None = None
    """Virtual channels that it alone uses (default: all classes share all of them)."""
    priority: Annotated[int, Field(ge=0, le=15)] = 0
    """`router.qos: strict`: a class goes before all that have a lower number."""
    weight: Annotated[int, Field(ge=1, le=255)] = 1
    """`router.qos: weighted`: flits of a class in a round."""
    pattern: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")] | None = None
    """Where its packets go (default: `traffic.pattern`, of which the other keys hold here, too)."""
    packet_flits: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Length of its packets (default: `traffic.packet_flits`)."""

    def problems(self) -> Iterator[Problem]:
        """Check that it says how much it offers."""
        if (self.share is None) == (self.load is None):
            yield Problem("share", f"or load must be given, not {'both' if self.share is not None else 'none of them'}")


def class_problems(traffic: Any) -> Iterator[Problem]:
    """Return what is wrong with the classes of a `TrafficConfig`; keys are from that section."""
    classes = traffic.classes
    if not classes:
        return
    if not 2 <= len(classes) <= CLASSES_MAX:
        yield Problem("classes", f"must be 2 to {CLASSES_MAX}, not {len(classes)}")
    names = [each.name for each in classes]
    for number, name in enumerate(names):
        if name in names[:number]:
            yield Problem(f"classes[{number}].name", f"{name} is the name of class {names.index(name)}, too")
        if name in _OTHER_COLUMNS:
            yield Problem(f"classes[{number}].name", f"{name} is the beginning of other columns of results")
    shares = [each.share for each in classes if each.share is not None]
    if shares and abs(sum(shares) - 1) > 1e-6:
        yield Problem("classes", f"shares must be 1 together, not {sum(shares):.6g}")
    own = [each.name for each in classes if each.vcs is not None]
    if own and len(own) < len(classes):
        without = next(name for name in names if name not in own)
        yield Problem("classes", f"vcs must be given for all classes or none, not for {own[0]} and not for {without}")
    for key, limit, value in (
        ("source", "bernoulli", traffic.source),
        ("message_packets", 1, traffic.message_packets),
        ("reply", None, traffic.reply),
        ("acknowledge", None, traffic.acknowledge),
        ("packet_range", None, traffic.packet_range),
        ("packet_lengths", (), traffic.packet_lengths),
    ):
        if value != limit:
            given = "it" if isinstance(value, Section | tuple) else value
            wanted = f"must be {limit}" if key in ("source", "message_packets") else "cannot stand together"
            ending = f", not {given}" if key in ("source", "message_packets") else ""
            yield Problem(key, f"{wanted} with traffic.classes{ending}")
    if "file" in (traffic.pattern, *(each.pattern for each in classes)):
        yield Problem("classes", "pattern file is not for classes of traffic; patterns with a name are")
