"""One grammar for settings in forms, URLs, files and on the command line."""
