"""How functions are compiled that only kernels call: as parts of the kernel, not by themselves.

numba optimises each function, with all that it calls, and makes machine code of it, before it does the same with the
function that calls it: what lies six calls below the kernel goes through that seven times. A part is translated to
LLVM's language and simplified once; it is inlined, optimised and becomes machine code only inside of the kernel.
"""

from typing import Any

from numba import _dynfunc, types  # type: ignore[attr-defined]
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import PassManager
from numba.core.dispatcher import _DispatcherBase
from numba.core.typed_passes import (
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import FixupArgs, IRProcessing, ReconstructSSA, TranslateByteCode

from hopforge.model.kernel.known_fields import PutKnown

#: those of numba's passes that arithmetic on numbers, records and entries of arrays needs
_PASSES = (
    TranslateByteCode, FixupArgs, IRProcessing, PutKnown, ReconstructSSA, NopythonTypeInference, PreLowerStripPhis,
    IRLegalization, NativeLowering, NoPythonBackend,
)  # fmt: skip


class PartLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code of a part, which is linked into that of its callers."""

    def _optimize_final_module(self) -> None:
        """Inline and optimise nothing yet."""

    def _finalize_final_module(self) -> None:
        """Make no machine code."""
        self._finalize_dynamic_globals()
        self._finalized = True


class PartCompiler(CompilerBase):  # type: ignore[misc]
    """Compiles a part: numbers, records, addresses and arrays that are there; it allocates and raises nothing."""

    def define_pipelines(self) -> list[PassManager]:
        """Return the passes, and let them fill a `PartLibrary`."""
        state = self.state
        state.library = PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.targetctx = state.targetctx.subtarget(get_executable=_name_of_part)
        passes = PassManager("part")
        for one in _PASSES:
            passes.add_pass(one, one.__name__)
        passes.finalize()
        return [passes]


if "get_call_template" not in vars(_DispatcherBase):  # another numba: it goes its own way (model.kernel.compile)
    raise ImportError("numba looks for the code of parts elsewhere")


def widen(part: Any) -> Any:
    """Let a part be compiled once for integers of all sizes, known or not; its callers make them int64, which is free.

    numba would compile it for an int32, for an int64, and for each number that it is given.
    """
    template_for = part.get_call_template

    def wide_template_for(args: Any, kws: Any) -> Any:
        return template_for([_wide(kind) for kind in args], {name: _wide(kind) for name, kind in kws.items()})

    part.get_call_template = wide_template_for
    return part


def _wide(kind: Any) -> Any:
    """Return the type that a part is compiled for where it is given this one."""
    plain: Any = types.unliteral(kind) if isinstance(kind, types.IntegerLiteral | types.BooleanLiteral) else kind
    return types.int64 if plain in types.signed_domain else plain


def _name_of_part(library: Any, description: Any, environment: Any) -> Any:
    """Return the object by which numba finds the part again; Python cannot call it."""
    return _dynfunc.make_function(description.lookup_module(), description.qualname, "", 0, environment, (library,))
