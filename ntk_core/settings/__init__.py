"""One grammar for settings, wherever they are given: in a form, a URL, a file, on the command line."""
