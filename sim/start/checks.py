"""For which commands a file is good, and why not for the others: `hopforge check`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hopforge.model.config import Config
from hopforge.model.config.base import suggestion
from hopforge.model.config.load import with_place
from hopforge.model.config.uses import unused_sections
from hopforge.model.errors import UserError
from hopforge.model.free_memory import out_of_memory
from hopforge.model.routing.combined.configured import routing_plan
from hopforge.model.shared import sharing
from hopforge.model.topology.configured import network_topology
from hopforge.sim.start.preparation import COMMANDS, for_command, prepare

__all__ = ["Verdict", "check_commands", "check_for", "useless_lines", "useless_sections", "verdict_rows"]


#: the demo does what can be done; topology uses most sections in one of its formats only; bounds simulate nothing
_NO_RUNS = ("demo", "topology", "bounds")
_MOST_NAMED = 5  # commands of a line


@dataclass(frozen=True)
class Verdict:
    """Whether a file is good for a command.

    Attributes
    ----------
    command : str
        With its part.
    asked : bool
        False: the file has no section that asks for it, and it was not prepared.
    reason : str
        Why the file is no good for it, with file and line; empty: it is good.
    routing : str
        Of `net`: how virtual channels keep its routing free of deadlock, if the algorithm says so.
    unused : tuple of str
        Sections and keys of the file that it does not read.
    """

    command: str
    asked: bool = True
    reason: str = ""
    routing: str = ""
    unused: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """It was prepared."""
        return self.asked and not self.reason


def check_commands(config: Config, progress: Callable[[str], None] = lambda command: None) -> list[Verdict]:
    """Prepare all commands that a file asks for, as they do it themselves; what several need is made once.

    Parameters
    ----------
    config : Config
        Read by ``load_config(path, keys=False)``.
    progress : callable
        Called with the name of each command.
    """
    found = []
    with sharing():
        for command, entry in COMMANDS.items():
            if entry.asked_by and all(entry.asked_by not in each.written for each in _all(config)):
                found.append(Verdict(command, asked=False))
                continue
            progress(command)
            reason, proof, unused = _prepared(command, config)
            routing = _routing_words(config, proof) if command == "net" and not reason else ""
            found.append(Verdict(command, reason=reason, routing=routing, unused=unused))
    return found


def _all(config: Config) -> list[Config]:
    return [config, *config.variants.values()]


def _routing_words(config: Config, proof: str) -> str:
    """Tell how the routing of a file that `net` takes is kept free of deadlock; its plan has just been made."""
    config = for_command("net", config)
    if config.router.model == "packet":
        return ""
    words = advice = ""
    if config.failed.none and config.traffic.acknowledge is None:
        plan = routing_plan(config, network_topology(config))
        words, advice = plan.words, plan.advice
    if not config.routing.check:
        verdict = "not proved (routing.check: false)"
    elif words or proof:
        verdict = f"proved free of deadlock {proof}".rstrip()
    else:
        return ""
    return "; ".join(part for part in (f"{config.routing.algorithm}: {verdict}", words, advice) if part)


def _prepared(command: str, config: Config) -> tuple[str, str, tuple[str, ...]]:
    """Prepare a command; returns why it cannot be, how its network was proved free of deadlock, and what is unused."""
    try:
        used = for_command(command, config)
        found = prepare(command, used)
    except UserError as error:
        return with_place(str(error)), "", ()
    except OSError as error:
        return (f"{error.filename}: {error.strerror}" if error.filename else str(error)), "", ()
    except MemoryError:
        return out_of_memory(), "", ()
    return "", str(getattr(found, "proof", "")), tuple(used.unused)


def check_for(command: str, config: Config) -> tuple[Config, str]:
    """Prepare one command; returns the configuration as it uses it, and of `net` the words of `Verdict.routing`.

    Raises
    ------
    UserError
        An unknown command, or a file that is no good for it.
    """
    if command not in COMMANDS:
        raise UserError(f"--for: no command {command!r}; {suggestion(command, COMMANDS)}")
    with sharing():
        found = prepare(command, for_command(command, config))
        words = _routing_words(config, str(getattr(found, "proof", ""))) if command == "net" else ""
    return for_command(command, config), words


def useless_sections(config: Config, verdicts: Sequence[Verdict]) -> dict[str, str]:
    """Return the sections of a file for which only commands are that it is no good for, with the first reason."""
    real = [verdict for verdict in verdicts if verdict.command not in _NO_RUNS]
    nobody = unused_sections(config, [verdict.command for verdict in real if verdict.good])
    found = {}
    for section in nobody:
        names = {section, section.partition(".")[0]}  # a key of a section that the command does not read at all
        refused = [
            each for each in real if each.reason and not names.intersection(unused_sections(config, [each.command]))
        ]
        if refused:
            found[section] = f"{refused[0].command}: {refused[0].reason}"
    return found


def useless_lines(useless: dict[str, str]) -> list[str]:
    """Return what is said of `useless_sections`: each reason once, with all sections that it concerns."""
    sections: dict[str, list[str]] = {}
    for section, reason in useless.items():
        sections.setdefault(reason, []).append(section)
    return [
        f"no command can use section{'s' if len(names) > 1 else ''} {', '.join(names)}: {reason}"
        for reason, names in sections.items()
    ]


def verdict_rows(config: Config, verdicts: Sequence[Verdict]) -> list[tuple[str, str]]:
    """Return (subject, words): commands that the file is good for, and why not for the others."""
    good = [verdict.command for verdict in verdicts if verdict.good]
    rows = [("routing", verdict.routing) for verdict in verdicts if verdict.routing]
    rows.append(("good for", ", ".join(good) or "no command"))
    reasons: dict[str, list[str]] = {}
    for verdict in verdicts:
        if not verdict.good:
            words = verdict.reason or f"no section {COMMANDS[verdict.command].asked_by} asks for it"
            reasons.setdefault(words, []).append(verdict.command)
    rows += [("not for", f"{', '.join(commands)}: {words}") for words, commands in reasons.items()]
    unused = unused_sections(config, good)
    partly = _partly_used([each for each in verdicts if each.good and each.command not in _NO_RUNS], unused)
    nobody = [key for key, words in partly.items() if not words]
    rows += [("not used", ", ".join([*unused, *nobody]))] if unused or nobody else []
    lines: dict[str, list[str]] = {}
    for key, words in partly.items():
        lines.setdefault(words, []).append(key)
    return rows + [("used in part", f"{', '.join(keys)}: {words}") for words, keys in lines.items() if words]


def _partly_used(good: Sequence[Verdict], unused: Sequence[str]) -> dict[str, str]:
    """Return the keys that some of the commands do not read that read their section, and which do; empty: none does."""
    found = {}
    for key in dict.fromkeys(key for verdict in good for key in verdict.unused if "." in key and key not in unused):
        concerned = [verdict for verdict in good if key.split(".", 1)[0] not in verdict.unused]
        readers = [verdict.command for verdict in concerned if key not in verdict.unused]
        others = [verdict.command for verdict in concerned if key in verdict.unused]
        found[key] = _shorter(readers, others) if readers else ""
    return found


def _shorter(readers: Sequence[str], others: Sequence[str]) -> str:
    """Say who reads a key, by the shorter of both lists."""
    words, names = ("read only by", readers) if len(readers) <= len(others) else ("not read by", others)
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{words} {', '.join(names[:_MOST_NAMED])}{more}"
