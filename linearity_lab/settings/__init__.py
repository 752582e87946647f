"""One grammar for settings in forms, URLs, files and on the command line."""

from linearity_lab.settings import grammar  # registers the display of settings
