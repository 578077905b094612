"""Turns log files into one Run: parse, tolerate, fold. No file content makes it raise, and no file content is executed."""
