"""The golden router, plain Python from the definition, and what is programmed into it.

May import: all other rooms of model. Read first: `golden.py`.
"""

from hopforge.moved import refuse_old_names

__getattr__ = refuse_old_names("model.router")
