"""The source lecture in twelve steps: a claim, a formula, a figure, a question to predict first."""

from dashboard.components.lecture import lecture
from dashboard.navigation import enter

lecture(enter("lecture"))
