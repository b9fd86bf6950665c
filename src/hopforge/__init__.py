"""hopforge: switches and routing of high-performance interconnection networks, from gates to applications."""

import sys

try:
    from hopforge import interrupts
except KeyboardInterrupt:  # nothing has begun: no traceback of that
    sys.stderr.write("hopforge: interrupted\n")
    raise SystemExit(130) from None

if interrupts.is_command():  # before anything else is loaded
    interrupts.end_at_once()

from hopforge.moved import refuse_old_places

__version__ = "0.1.0"

refuse_old_places()
