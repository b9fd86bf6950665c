"""What the shell offers for an argument when Tab is pressed (hopforge --install-completion)."""


def complete_kind(incomplete: str) -> list[str]:
    """Kinds of networks of `hopforge init`, and the word for all examples."""
    from hopforge.sim.start.examples import WORD
    from hopforge.sim.start.new_file import names

    return [kind for kind in sorted([*names(), WORD]) if kind.startswith(incomplete)]


def complete_key(incomplete: str) -> list[str]:
    """Keys of `hopforge explain`: sections, and the keys of a section that is written."""
    from hopforge.model.config.reference import all_keys, key_help
    from hopforge.model.errors import UserError

    section = incomplete.rpartition(".")[0]
    try:
        known = [key.path for found in (key_help(section) if section else [all_keys()]) for key in found.keys]
    except UserError:
        return []
    return sorted({path for path in known if path.startswith(incomplete)})
