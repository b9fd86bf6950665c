"""The file of a kept result: the result, all that decided it, and beside it how long it took."""

import json
import os
import platform
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import hopforge
from hopforge.model.output.program_digest import program_digest
from hopforge.model.output.results import MEASURED, package_versions, write_own
from hopforge.sim.run.wanted_result import Wanted

__all__ = ["TIMES", "find_results", "why_again", "write_result"]

#: folder beside the results: how long each took
TIMES = "times"
#: keys that are named when a configuration has changed
_NAMED_KEYS = 3

Row = dict[str, Any]


def find_results(wanted: Sequence[Wanted], store: Path) -> tuple[dict[str, Any], list[Path]]:
    """Return the results that are kept, by key, and the files that hold none, or that of something else."""
    results: dict[str, Any] = {}
    damaged: list[Path] = []
    for one in wanted:
        path = store / f"{one.key}.json"
        if one.key in results or path in damaged:
            continue
        kept = _read(path)
        if kept is not None and _decided_alike(kept, one):
            results[one.key] = _with_times(kept["result"], store / TIMES / path.name)
        elif os.path.lexists(path):
            damaged.append(path)
    return results, damaged


def write_result(path: Path, wanted: Wanted, result: Any) -> Any:
    """Write a result with all that decided it, and beside it how long it took; returns it as a later run reads it."""
    result, times = _times_apart(json.loads(json.dumps(result, default=lambda value: value.item())))
    kept = {
        "name": wanted.name,
        "hopforge": hopforge.__version__,
        "program_digest": program_digest(),
        "versions": {"python": platform.python_version(), **package_versions()},
        "configuration": wanted.configuration,
        "files": wanted.files,
        "result": result,
        "result_sha256": _result_digest(result),
    }
    beside = path.parent / TIMES / path.name
    if times:
        write_own(beside, json.dumps(times) + "\n")
    write_own(path, json.dumps(kept, indent=1) + "\n")
    return _with_times(result, beside)


def _times_apart(result: Any) -> tuple[Any, list[Row]]:
    """Return a result without what was measured of the computation, and that: a row for each row, none if all lack."""
    rows = result if isinstance(result, list) else [result]
    times = [{key: row[key] for key in row if key in MEASURED} if isinstance(row, dict) else {} for row in rows]
    if not any(times):
        return result, []
    left = [{key: value for key, value in row.items() if key not in MEASURED} for row in rows]
    return left if isinstance(result, list) else left[0], times


def _with_times(result: Any, path: Path) -> Any:
    """Put back how long a result took; times that are lost are no reason to compute it again."""
    rows = result if isinstance(result, list) else [result]
    try:
        times = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    except (OSError, ValueError, RecursionError):
        times = []
    if (
        not isinstance(times, list)
        or len(times) != len(rows)
        or not all(isinstance(row, dict) for row in (*rows, *times))
    ):
        return result
    whole = [
        {**row, **{key: value for key, value in spent.items() if key in MEASURED and isinstance(value, float)}}
        for row, spent in zip(rows, times, strict=True)
    ]
    return whole if isinstance(result, list) else whole[0]


def _read(path: Path) -> dict[str, Any] | None:
    """Return what was kept in a file; None if there is none, or it is damaged or of another form."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    except (OSError, ValueError, RecursionError):
        return None
    forms = {"name": str, "hopforge": str, "program_digest": str, "configuration": dict, "files": dict}
    if not isinstance(kept, dict) or not all(isinstance(kept.get(key), form) for key, form in forms.items()):
        return None
    whole = "result" in kept and kept.get("result_sha256") == _result_digest(kept["result"])
    return kept if whole else None


def _decided_alike(kept: Mapping[str, Any], wanted: Wanted) -> bool:
    """Tell whether a result is of what its name says: a file can be copied over another."""
    now = json.loads(json.dumps([program_digest(), wanted.configuration, wanted.files]))
    return [kept["program_digest"], kept["configuration"], kept["files"]] == now


def _result_digest(result: Any) -> str:
    """Digest of a result as it stands in its file: what somebody has changed there is damaged."""
    return sha256(json.dumps(result, sort_keys=True).encode()).hexdigest()


def why_again(wanted: Sequence[Wanted], total: int, unit: str, store: Path, damaged: Sequence[Path]) -> Iterator[str]:
    """Yield why results are computed again that the same runs have given before."""
    if not wanted:
        return
    for path in damaged:
        yield f"{path}: damaged; computed again"
    others: dict[str, list[dict[str, Any]]] = {}
    strange = 0
    for path in sorted(set(store.glob("*.json")).difference(damaged)):
        kept = _read(path)
        if kept is not None:
            others.setdefault(kept["name"], []).append(kept)
        else:
            strange += 1
    reasons: Counter[str] = Counter()
    for one in wanted:
        changes = [_changes(kept, one) for kept in others.get(one.name, [])]
        if changes:
            fewest = min(changes, key=len)
            reasons[" and ".join(fewest)] += 1
    for reason, count in reasons.items():
        yield f"{count} of {total} {unit} computed again: {reason}"
    if strange:
        yield f"{store}: {strange} files are damaged or of an older hopforge, and not used"


def _changes(kept: Mapping[str, Any], wanted: Wanted) -> list[str]:
    """Say what has changed since a result of the same run was kept."""
    changes = []
    if kept["program_digest"] != program_digest():
        changes.append(f"made by another version of hopforge ({kept['hopforge']}, {kept['program_digest'][:8]})")
    before, now = _flat(kept["configuration"]), _flat(json.loads(json.dumps(wanted.configuration)))
    keys = sorted(key for key in before.keys() | now.keys() if before.get(key, ...) != now.get(key, ...))
    if keys:
        more = ", …" if len(keys) > _NAMED_KEYS else ""
        changes.append(f"the configuration changed ({', '.join(keys[:_NAMED_KEYS])}{more})")
    files = kept["files"]
    changes += [f"{name} changed" for name in wanted.files if name in files and files[name] != wanted.files[name]]
    changes += [f"{name} is new" for name in wanted.files if name not in files and not keys]
    changes += [f"{name} is not read any more" for name in files if name not in wanted.files and not keys]
    return changes


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested mappings as one, with dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
