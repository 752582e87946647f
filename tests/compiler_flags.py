"""XLA flags of tests: fast compilation against oracles, usual emitters for bitwise comparisons.

XLA's older emitters, without splitting of modules, take a quarter of the time
(docs/decisions/0013-tests.md).
"""

from importlib.metadata import version

# An unknown flag would end the process.
_KNOWN = tuple(map(int, version("jaxlib").split(".")[:2])) < (0, 11)
QUICK_FLAGS = (
    ("--xla_cpu_use_fusion_emitters=false", "--xla_cpu_parallel_codegen_split_count=1")
    if _KNOWN
    else ()
)
# For servers and workers whose numbers no test compares with ordinary programs.
QUICK_ENVIRONMENT = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "true", "XLA_FLAGS": " ".join(QUICK_FLAGS)}
# Options of a single compilation with XLA's default emitters, whatever the flags of the process.
USUAL_EMITTERS = (
    {"xla_cpu_use_fusion_emitters": True, "xla_cpu_parallel_codegen_split_count": 32}
    if _KNOWN
    else {}
)
AS_FOR_PEOPLE = {
    "xla_backend_optimization_level": 3,
    "xla_llvm_disable_expensive_passes": False,
    **USUAL_EMITTERS,
}
