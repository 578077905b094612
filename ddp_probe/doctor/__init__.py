"""Checks a host before a job starts: one file per check in checks/, and the programs of its children in programs/."""
