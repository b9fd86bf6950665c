"""What fields with known values (`constant_record`) rule out is not compiled: a pass of the compiler, before types."""

from typing import Any

from numba.core.analysis import dead_branch_prune
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.ir import Arg, Assign, Const, Expr
from numba.core.ir_utils import get_definition, guard


@register_pass(mutates_CFG=True, analysis_only=False)
class PutKnown(FunctionPass):  # type: ignore[misc]
    """Puts the values of known fields of arguments in their place, and leaves out what is then never reached."""

    _name = "put_known"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Change the function; tell whether it was."""
        known = [getattr(kind, "known", {}) for kind in state.args]
        if not any(known):
            return False
        code = state.func_ir
        for block in code.blocks.values():
            for line in block.find_insts(Assign):
                read = line.value
                if not (isinstance(read, Expr) and read.op == "getattr"):
                    continue
                record = guard(get_definition, code, read.value)
                if isinstance(record, Arg) and read.attr in known[record.index]:
                    line.value = Const(known[record.index][read.attr], line.loc)
                    meanings = code._definitions[line.target.name]
                    meanings[:] = [line.value if one is read else one for one in meanings]
        dead_branch_prune(code, state.args)
        return True
