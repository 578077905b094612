"""Tells a logged failure from a logged warning: torch warns of every attempt to connect, in jobs that go on to do well."""

# The beginning of a pattern that has to be found in one line, other than a warning of torch's C++ or Python log.
NO_WARNING = r"(?m:^)(?!(?:\[rank\d+\]: ?)?\[?W(?:\d{4})? )[^\n]*?"
# The beginning of a pattern that has to be found in an exception.
RAISED = r"(?:Error|Exception|Assertion\w*|Exit)\b: .*?"
