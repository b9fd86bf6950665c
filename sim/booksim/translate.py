"""A configuration of BookSim 2 becomes one of ours, with the files that it needs beside it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml

from hopforge.model.config import Config
from hopforge.model.config.load import parse_config
from hopforge.model.output.destination import ResultError, check_destination, is_special, may_replace, one_file
from hopforge.sim.booksim.grammar import BooksimError, read_settings
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
class Translation:
    """What a configuration of BookSim is here.

    Attributes
    ----------
    sections : dict
        The new configuration; ``FILE`` stands for the name that it will have.
    files : dict
        End of the name → text of further files.
    translated : list of str
        Keys that were given and translated.
    without_effect : dict
        Keys that were given and do not change results → why.
    words : tuple of str
        What was translated, as on the command line.
    """

    sections: dict[str, Any]
    files: dict[str, str]
    translated: list[str]
    without_effect: dict[str, str]
    words: tuple[str, ...]

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

    def text(self, stem: str) -> str:
        """Return the configuration as YAML; further files are named `stem` and their ending."""
        named = {key: _with_name(value, stem) for key, value in self.sections.items()}
        body = yaml.safe_dump(named, sort_keys=False, default_flow_style=None, width=120, allow_unicode=True)
        source = "".join(one if one.isprintable() else "?" for one in " ".join(self.words))
        head = f"# From a configuration of BookSim 2 (docs/guides/compare-with-booksim.md): {source}\n"
        return f"{head}{_SEAL}{_seal(head, body, self.files)}\n{body}"

    def config(self, folder: Path, stem: str) -> Config:
        """Check the new configuration as a file in `folder`."""
        return parse_config(self.text(stem), f"{stem}.yml", folder=folder, keys=False)

    def write(self, target: Path) -> list[Path]:
        """Write the configuration and the files beside it; return them all, the configuration last.

        Raises
        ------
        ConfigError
            hopforge cannot take it.
        ResultError, OSError
            A file cannot be written, or would replace one of another kind, or one that was changed by hand.
        """
        if self.files and (is_special(target) or target.suffix in self.files):
            raise BooksimError(f"{target}: name a YAML file; {' and '.join(self.files)} is written beside it")
        self.config(target.parent, target.stem)
        texts = {target.with_name(target.stem + ending): text for ending, text in self.files.items()}
        texts[target] = self.text(target.stem)
        kinds = dict(zip(texts, [_KINDS[ending] for ending in self.files] + [_TRANSLATED], strict=True))
        for place, kind in kinds.items():
            check_destination(place, kind, named=True)
        _refuse_changed(target, texts)
        for place, text in texts.items():
            with one_file(place, kinds[place]) as part:
                part.write_text(text, encoding="utf-8")
        return list(texts)


def _seal(head: str, body: str, files: Mapping[str, str]) -> str:
    """Return the digest of a configuration (without the line of it) and of the files beside it."""
    parts = [head, body, *(text for _, text in sorted(files.items()))]
    return sha256("\0".join(parts).encode()).hexdigest()[:16]


def _refuse_changed(target: Path, texts: Mapping[Path, str]) -> None:
    """Refuse to replace files that are not as `Translation.write` left them.

    Raises
    ------
    ResultError
        Somebody has changed one, or it is from somewhere else.
    """
    ours = _as_written(target)
    for place, text in texts.items():
        if is_special(place) or may_replace(place) or place in ours or _text_at(place) == text:
            continue
        raise ResultError(
            f"{place}: is not as hopforge import wrote it, and is not overwritten; name another place, or add --force"
        )


def _as_written(target: Path) -> set[Path]:
    """Return which of a configuration and the files beside it are as they were written."""
    found = _text_at(target)
    head, _, rest = found.partition("\n")
    line, _, body = rest.partition("\n")
    beside = {ending: target.with_name(target.stem + ending) for ending in _KINDS}
    there = {ending: _text_at(place) for ending, place in beside.items() if place.is_file()}
    for files in ({}, there):
        if line == _SEAL + _seal(head + "\n", body, files):
            return {target, *(beside[ending] for ending in files)}
    return set()


def _text_at(place: Path) -> str:
    return place.read_text(encoding="utf-8", errors="replace") if place.is_file() else ""


#: begins the line of a configuration that tells whether it was changed
_SEAL = "# as written: "
_KINDS = {".anynet": "a network"}
_TRANSLATED = "a translated configuration"


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
    sections: dict[str, Any] = {"name": _name(files[-1].stem), "seed": _seed(settings), "topology": network.topology}
    sections |= _address(network)
    sections |= {"router": router, "routing": network.routing}
    sections |= {"traffic": traffic, "simulation": {"load": load} | _run(settings)}
    settings.finish()
    return Translation(sections, network.files, settings.translated, settings.without_effect, tuple(words))


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


def _with_name(section: Any, stem: str) -> Any:
    if not isinstance(section, dict):
        return section
    return {
        key: value.replace("FILE", stem, 1) if key == "file" and isinstance(value, str) else value
        for key, value in section.items()
    }
