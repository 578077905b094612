"""How a run gets from one place to another: one archive for a person, one fold a host for a report over all."""
