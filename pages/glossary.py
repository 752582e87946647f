"""The words of the field, to be searched, each with a link of its own."""

from dashboard.components.glossary import glossary
from dashboard.navigation import enter

glossary(enter("glossary"))
