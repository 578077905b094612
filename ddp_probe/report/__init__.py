"""From a diagnosis to what a person, a program or a pipe reads: one file per form. No form changes what was found."""
