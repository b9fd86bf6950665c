"""Files that hold a schedule of GOAL, as text or binary: telling, reading, writing."""

from collections.abc import Callable, Iterable
from pathlib import Path

from hopforge.model.config.base import SHIPPED
from hopforge.model.input_file import open_input, read_input
from hopforge.model.output.destination import is_special, may_replace, one_file
from hopforge.model.workload.goal_binary import goal_bytes, is_binary_goal, parse_binary_goal
from hopforge.model.workload.goal_text import goal_lines, parse_goal
from hopforge.model.workload.schedule import GoalError, Schedule

#: how a text of GOAL may begin; lines of a time-independent trace begin with a digit or #
_BEGINS = (b"num_ranks", b"rank", b"//", b"/*")
_SUFFIXES = (".goal", ".bin")
_BOM = b"\xef\xbb\xbf"
_LOOK_BYTES = 4096


def is_goal(source: str | Path) -> bool:
    """Tell whether a file is meant to be a schedule: by its name (.goal, .bin), else by how it begins."""
    path = Path(source)
    if str(source).startswith(SHIPPED) or path.is_dir():
        return False
    if path.suffix in _SUFFIXES:
        return True
    try:
        with open_input(path) as file:
            head = file.read(_LOOK_BYTES)
    except OSError:  # whoever reads it says so
        return False
    return is_binary_goal(head) or head.removeprefix(_BOM).lstrip().startswith(_BEGINS)


def read_goal(source: str | Path) -> Schedule:
    """Read a schedule, text or binary.

    Raises
    ------
    GoalError
        Unreadable or too large a file, or what is wrong in it, with its line.
    """
    path = Path(source)
    try:
        content = read_input(path)
    except OSError as error:
        raise GoalError(f"{path}: cannot be read: {error.strerror or error}") from error
    if is_binary_goal(content):
        return parse_binary_goal(path.stem, str(path), content)
    return parse_goal(path.stem, str(path), _text(path, content))


def _text(path: Path, content: bytes) -> str:
    place = content.find(b"\0")
    if place < 0:
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            place = error.start
    begin = int.from_bytes(content[:8], "little")
    raise GoalError(
        f"{path}: neither a text (byte 0x{content[place]:02x}) nor a binary schedule (it begins with {begin}, not 4223)"
    )


def _text_bytes(schedule: Schedule) -> Iterable[bytes]:
    return (piece.encode() for piece in goal_lines(schedule))


def _binary_bytes(schedule: Schedule) -> Iterable[bytes]:
    return [goal_bytes(schedule)]


WRITERS: dict[str, tuple[str, Callable[[Schedule], Iterable[bytes]]]] = {
    "goal": (".goal", _text_bytes),
    "goal-binary": (".bin", _binary_bytes),
}
"""Form → how names of its files end, and the bytes of one."""


def write_goal(schedule: Schedule, target: str | Path, form: str = "goal") -> None:
    """Write a schedule into a new file, which appears only when it is complete; ``--force`` replaces one.

    Raises
    ------
    GoalError
        The file exists, or cannot be written.
    """
    path = Path(target)
    if not is_special(path) and not may_replace(path):
        raise GoalError(f"{path}: exists already")
    try:
        with one_file(path) as part, part.open("wb") as file:
            for piece in WRITERS[form][1](schedule):
                file.write(piece)
    except OSError as error:
        raise GoalError(f"{path}: {error.strerror}") from error
