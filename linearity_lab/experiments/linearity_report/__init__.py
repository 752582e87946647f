"""Reports of two checkpoints.

Shown here, listed on *Results*, started by the command line alone.
"""

from linearity_lab.page_modules import Page

PAGE = Page(
    "Your model",
    ":material/model_training:",
    "Is my own model linear?",
    group="Your own",
    place=0.5,
)
