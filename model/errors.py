"""The one class of errors that the command line shows as a single line."""


class UserError(Exception):
    """A user's mistake or a missing tool: the message is one clear line; exit status 2."""
