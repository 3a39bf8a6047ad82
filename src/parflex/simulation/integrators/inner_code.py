"""Functions that only other compiled functions call, handed on as they are: LLVM sees each of them once.

numba optimises a function together with all that it calls and makes machine code of it, even where only another
compiled function ever calls it. In a loop of thirty functions, some of them five calls deep, that is most of the time
of compilation. Here such a function stays what numba wrote, until the loop that calls it is compiled as a whole.
"""

from __future__ import annotations

from typing import Any

from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering


class _Unoptimised(JITCodeLibrary):
    """What numba wrote of a function, with what it calls; neither optimised nor made machine code."""

    def finalize(self) -> None:
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _InnerLowering(NativeLowering):
    """Writes a function for its callers alone."""

    _name = "inner_lowering"

    def run_pass(self, state: Any) -> bool:
        context = state.targetctx
        state.library = _Unoptimised(context.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        state.flags.no_compile = True
        super().run_pass(state)
        lowered = state["cr"]
        described = lowered.fndesc
        # what callers know it by; there is nothing that Python could call
        name = described.qualname.rpartition(".")[2]
        handle = _dynfunc.make_function(described.lookup_module(), name, "", 0, lowered.env, (state.library,))
        context.insert_user_function(handle, described, [state.library])
        state["cr"] = lowered._replace(cfunc=handle)
        return True


class InnerCompiler(CompilerBase):
    """numba's own steps, but for the last."""

    def define_pipelines(self) -> list[Any]:
        """One pipeline."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [
            (_InnerLowering, words) if step is NativeLowering else (step, words) for step, words in passes.passes
        ]
        passes.finalize()
        return [passes]
