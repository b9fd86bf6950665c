"""A configuration of BookSim 2 becomes one of ours, with the files that it needs beside it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hopforge.model.config.translated_file import TranslatedFile
from hopforge.sim.booksim.grammar import read_settings
from hopforge.sim.booksim.keys import Settings
from hopforge.sim.booksim.networks import Network, translate_network
from hopforge.sim.booksim.routers import translate_router
from hopforge.sim.booksim.supplement import Supplement
from hopforge.sim.booksim.traffic import translate_traffic

#: of the mean latency, both sides: when a run below the knee ends
PRECISION = 0.005
_LEAST_CYCLES = 1000
#: sample periods that BookSim measures at least, and most cycles that it may take
_LEAST_PERIODS = 3
_MOST_CYCLES = 10**9


@dataclass(frozen=True)
class Translation(TranslatedFile):
    """What a configuration of BookSim is here.

    Attributes
    ----------
    translated : list of str
        Keys that were given and translated.
    without_effect : dict
        Keys that were given and do not change results → why.
    """

    translated: list[str]
    without_effect: dict[str, str]

    def rows(self) -> list[tuple[str, str]]:
        """Return (subject, words) for people: what became of the keys that were given."""
        by_reason: dict[str, list[str]] = {}
        for key, reason in self.without_effect.items():
            by_reason.setdefault(reason, []).append(key)
        rows = [("translated", ", ".join(self.translated) or "nothing: all keys are BookSim's defaults")]
        rows += [("without effect", f"{', '.join(keys)} ({reason})") for reason, keys in by_reason.items()]
        if self.sections["routing"].get("check") is False:
            rows.append(("not proved", "BookSim's routing on anynet takes any virtual channel and may deadlock"))
        return rows


def translate(words: Sequence[str], beside: Supplement | None = None) -> Translation:
    """Translate what follows ``hopforge import booksim``: files and parameters ``key=value``.

    Raises
    ------
    BooksimError
        Something that BookSim does not take, or that hopforge cannot do: file, line, key and value.
    """
    settings = Settings(read_settings(words))
    files = [Path(word) for word in words if "=" not in word]
    beside = beside or Supplement()
    if beside.folder is None:
        beside = replace(beside, folder=files[-1].parent)
    network = translate_network(settings, beside)
    router = translate_router(settings) | network.links
    traffic, load = translate_traffic(settings, network.hosts, beside)
    _check_decision(settings, network.routing, traffic)
    sections: dict[str, Any] = {"name": _name(files[-1].stem), "seed": _seed(settings), "topology": network.topology}
    sections |= _address(network)
    sections |= {"router": router, "routing": network.routing}
    sections |= {"traffic": traffic, "simulation": {"load": load} | _run(settings)}
    settings.finish()
    source = f"BookSim 2 (docs/guides/compare-with-booksim.md): {' '.join(words)}"
    return Translation(sections, network.files, source, settings.translated, settings.without_effect)


def _check_decision(settings: Settings, routing: dict[str, Any], traffic: dict[str, Any]) -> None:
    """Refuse packets whose way is decided before they are at the router, where hopforge has none of that kind."""
    beside = {"host": ("classes", "reply"), "ahead": ("reply",)}.get(str(routing.get("decision")), ())
    for key, word in (("classes", "classes of traffic"), ("reply", "reads and writes")):
        if key in beside and key in traffic:
            settings.refuse("routing_delay", f"with {word} hopforge does not decide before a packet is at its router")


def _name(stem: str) -> str:
    name = re.sub(r"[^a-z0-9_]+", "_", stem.lower())
    return name if re.match(r"[a-z]", name) else f"booksim_{name}"


def _address(network: Network) -> dict[str, Any]:
    """Return an address that the network fits; without lookups nothing depends on it."""
    bits = max(network.hosts - 1, 1).bit_length()
    return {"address": {"width_bits": bits, "chunk_bits": 4}} if bits > 24 else {}


def _seed(settings: Settings) -> int:
    if settings.text("seed"):
        settings.refuse("seed", "must be a whole number; every run of hopforge can be repeated")
    return settings.at_least("seed", 0)


def _run(settings: Settings) -> dict[str, Any]:
    """Return lengths of a run: BookSim's warm-up, its least and its most measured cycles."""
    kind = settings.text("sim_type")
    if kind not in ("latency", "throughput"):
        settings.refuse("sim_type", "hopforge translates latency and throughput")
    settings.no_effect("for sim_type batch", "batch_size", "batch_count", "max_outstanding_requests")
    settings.must_be("sim_count", 1, "seeds of `hopforge sweep` (simulation.seeds) repeat a run")
    settings.must_be("include_queuing", 1, "hopforge's latency counts the source queue; it also tells network_latency")
    period, warmup = settings.at_least("sample_period", 1), settings.at_least("warmup_periods", 0)
    samples = settings.at_least("max_samples", 1)
    if period * max(warmup, samples, _LEAST_PERIODS) > _MOST_CYCLES:
        settings.refuse("sample_period", f"periods of more than {_MOST_CYCLES} cycles in all")
    least = max(_LEAST_PERIODS * period, _LEAST_CYCLES)
    most = least if kind == "throughput" else max(samples * period, least)
    return {"warmup_cycles": max(warmup * period, 1), "min_cycles": least, "max_cycles": most, "precision": PRECISION}
