"""The one class of errors that the command line shows as a single line."""


class UserError(Exception):
    """A user's mistake or a missing tool: the message is one clear line; exit status 2."""

    exit_status = 2


def error_words(error: BaseException) -> str:
    """Return what an error says; one of the user's own may fail in saying it."""
    try:
        return str(error)
    except Exception:  # whatever a `__str__` of the user's raises
        return ""
