"""Models of one's own: no page, since none may run one; what *Results* shows of a run that the command line kept."""
