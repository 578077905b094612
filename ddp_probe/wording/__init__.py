"""Texts that know their template and their values: a page writes them in the reader's language, and JSON has the values beside the text.

English is made at once, since it is what tests, programs and logs compare; any other language is written by the page, from the same
template and values.
"""
