"""Custom models: no page, since pages never run them; *Results* shows runs of the command line."""
