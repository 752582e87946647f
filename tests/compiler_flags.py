"""How tests compile: quickly where they compare with an oracle, with the usual emitters where every bit counts.

XLA's older emitters, all in one piece, bring its work to a quarter (docs/decisions/0013-tests.md).
"""

from __future__ import annotations

from importlib.metadata import version

# A flag that XLA does not know would end the process.
_KNOWN = tuple(map(int, version("jaxlib").split(".")[:2])) < (0, 11)
QUICK_FLAGS = ("--xla_cpu_use_fusion_emitters=false", "--xla_cpu_parallel_codegen_split_count=1") if _KNOWN else ()
# For servers and workers whose numbers no test compares with those of people's programs.
QUICK_ENVIRONMENT = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "true", "XLA_FLAGS": " ".join(QUICK_FLAGS)}
# Options of one compilation, whatever the process was started with: XLA's own choice of emitters.
USUAL_EMITTERS = {"xla_cpu_use_fusion_emitters": True, "xla_cpu_parallel_codegen_split_count": 32} if _KNOWN else {}
AS_FOR_PEOPLE = {
    "xla_backend_optimization_level": 3,
    "xla_llvm_disable_expensive_passes": False,
    **USUAL_EMITTERS,
}
