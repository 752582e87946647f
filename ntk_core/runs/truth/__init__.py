"""Every claim that users read, beside what the gallery measures of it; the numbers decide what holds. Free of JAX."""

from ntk_core.runs.truth._claim import Claim, Judged, claims, judged
from ntk_core.runs.truth._page import TRUTH, rendered
from ntk_core.runs.truth._readings import Measured

__all__ = ["TRUTH", "Claim", "Judged", "Measured", "claims", "judged", "rendered"]
