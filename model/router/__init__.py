"""The golden router, and what is programmed into it."""

from hopforge.moved import refuse_old_names

__getattr__ = refuse_old_names("model.router")
