"""Turns a diagnosis into output for a person, a program or a pipe: one file per form. No form changes the findings."""
