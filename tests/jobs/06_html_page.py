"""The download answered with a web page, a log-in form or an error, and it was kept under the checkpoint's name.

Command: python 06_html_page.py
Root cause to name: not_a_checkpoint_file; the file is an HTML page.
"""

from pathlib import Path

import torch
from pieces import TinyModel

PAGE = """<!DOCTYPE html>
<html><head><title>403 Forbidden</title></head>
<body><h1>403 Forbidden</h1><p>You do not have permission to download this file.</p></body></html>
"""


def main() -> None:
    """Load the pretrained weights."""
    Path("pretrained.pth").write_text(PAGE, encoding="utf-8")
    model = TinyModel()
    model.load_state_dict(torch.load("pretrained.pth", map_location="cpu"))


if __name__ == "__main__":
    main()
