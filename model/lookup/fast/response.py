"""What stands at the response port of an engine: a register, so it is known before the cycle."""

from hopforge.model.kernel.compile import inner
from hopforge.model.lookup.fast import layout as at


@inner
def visible_response(state):  # type: ignore[no-untyped-def]
    """Return whether there is a response, its tag, its output and whether a row matched."""
    s = state.regs
    if state.params[at.P_DEPTH] > at.SHALLOW_DEPTHS:
        first = state.responses[0]
        return s[at.S_RESPONSES] > 0, first[at.X_TAG], first[at.X_OUTPUT], first[at.X_MATCH]
    return s[at.S_OUT_VALID] != 0, s[at.S_OUT_TAG], s[at.S_OUT_OUTPUT], s[at.S_OUT_MATCH]
