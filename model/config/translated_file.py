"""A configuration that was translated from another simulator's, written with the files that it needs beside it."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml

from hopforge.model.config.load import parse_config
from hopforge.model.config.root import Config
from hopforge.model.output.destination import ResultError, check_destination, is_special, may_replace, one_file

#: begins the line of a configuration that tells whether it was changed
_SEAL = "# as written: "
#: end of a name → what such a file is
_KINDS = {".anynet": "a network", ".json": "JSON"}
_TRANSLATED = "a translated configuration"
#: of a file that may be one of ours
_MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class TranslatedFile:
    """A new configuration and the files that it names.

    Attributes
    ----------
    sections : dict
        The configuration; ``FILE`` in a key ``file`` of a section stands for the name that it will have.
    files : dict
        End of the name, ``.anynet`` or ``.json`` → text of further files.
    source : str
        Of which simulator it was, and what; for its first line.
    """

    sections: dict[str, Any]
    files: dict[str, str]
    source: str

    def text(self, stem: str) -> str:
        """Return the configuration as YAML; further files are named `stem` and their ending."""
        named = {key: _with_name(value, stem) for key, value in self.sections.items()}
        body = yaml.safe_dump(named, sort_keys=False, default_flow_style=None, width=120, allow_unicode=True)
        head = f"# From a configuration of {''.join(one if one.isprintable() else '?' for one in self.source)}\n"
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
            A file cannot be written, or would replace one of another kind, or one that was changed by hand; or `target`
            has the ending of a file beside it, or is a device.
        """
        if self.files and (is_special(target) or target.suffix in self.files):
            raise ResultError(f"{target}: name a YAML file; {' and '.join(self.files)} is written beside it")
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
    """Refuse to replace files that are not as `TranslatedFile.write` left them.

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
    for files in ({}, *({ending: text} for ending, text in there.items())):
        if line == _SEAL + _seal(head + "\n", body, files):
            return {target, *(beside[ending] for ending in files)}
    return set()


def _text_at(place: Path) -> str:
    """Return what stands there; nothing, if that is no file, or more than was ever written."""
    if not place.is_file() or place.stat().st_size > _MOST_BYTES:
        return ""
    return place.read_text(encoding="utf-8", errors="replace")


def _with_name(section: Any, stem: str) -> Any:
    if not isinstance(section, dict):
        return section
    return {
        key: value.replace("FILE", stem, 1) if key == "file" and isinstance(value, str) else value
        for key, value in section.items()
    }
