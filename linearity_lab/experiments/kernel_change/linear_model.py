"""When and how the softmax of the linear model stands beside ΔK(softmax)."""

# Its kernel is dense, of this many rows at most. Our choice.
MAX_ROWS = 600
LINEAR_MODEL_TITLE = "softmax of the linear model"
