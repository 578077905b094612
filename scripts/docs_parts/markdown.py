"""What the pages have in common: the note at the top, text that Markdown leaves alone, and links to headings."""

NOTE = "<!-- Printed by scripts/render_docs from %s. Change that, then run scripts/render_docs. -->\n"


def prose(text: str) -> str:
    """Return a sentence of the code such that Markdown shows it as it stands."""
    for sign in ("|", "<", "*"):
        text = text.replace(sign, "\\" + sign)
    return text.replace("__", "\\_\\_")


def anchor(title: str) -> str:
    """Return what GitHub makes of a heading."""
    return title.replace(".", "").lower()
