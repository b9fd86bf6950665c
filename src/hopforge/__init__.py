"""hopforge: switches and routing of high-performance interconnection networks, from gates to applications."""

from hopforge.moved import refuse_old_places

__version__ = "0.1.0"

refuse_old_places()
