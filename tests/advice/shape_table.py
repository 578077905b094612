"""Twenty and more shapes in which programs call torch.save or torch.load: the line of the call begins with ¶.

Each is the body of a program's function main(rank), or of what it calls; of two ranks, only rank 0 saves.
"""

from typing import NamedTuple, Tuple


class Shape(NamedTuple):
    """One way to write the call."""

    name: str
    text: str
    exact: Tuple[str, ...] = ("DDP503", "DDP521")  # The rules whose change is a diff; of the others there are words.

    def program(self, head: str) -> str:
        """Return the source, without the mark."""
        return head + self.text.lstrip("\n").replace("¶", "") + "\n"

    def line(self, head: str) -> int:
        """Return the line of the call."""
        return (head + self.text.lstrip("\n")).partition("¶")[0].count("\n") + 1

    def function(self) -> str:
        """Return the function that the call is in."""
        before = self.text.partition("¶")[0].splitlines()
        named = [line.strip().split("(")[0][4:] for line in before if line.strip().startswith("def ")]
        return named[-1] if named else "main"


_MAIN = "def main(rank):\n    if rank == 0:\n"
SAVES = (
    Shape("direct", _MAIN + "¶        torch.save(STATE, PATH)"),
    Shape("keyword", _MAIN + "¶        torch.save(f=PATH, obj=STATE)"),
    Shape("pathlib", _MAIN + "¶        torch.save(STATE, pathlib.Path(FOLDER) / 'model.pth')"),
    Shape("f-string", _MAIN + "¶        torch.save(STATE, f'{FOLDER}/model.pth')"),
    Shape("os.path.join", "import os\n" + _MAIN + "¶        torch.save(STATE, os.path.join(FOLDER, 'model.pth'))"),
    Shape(
        "*args helper",
        """
def save_on_master(*args, **kwargs):
    if RANK[0] == 0:
¶        torch.save(*args, **kwargs)
def main(rank):
    save_on_master(STATE, PATH)
""",
    ),
    Shape(
        "**kwargs helper",
        """
def save_on_master(**kwargs):
    if RANK[0] == 0:
¶        torch.save(**kwargs)
def main(rank):
    save_on_master(obj=STATE, f=PATH)
""",
    ),
    Shape(
        "helper that returns what the save returns",
        """
def keep(*args, **kwargs):
¶    return torch.save(*args, **kwargs)
def main(rank):
    if rank == 0:
        assert keep(STATE, f=PATH) is None
""",
    ),
    Shape(
        "helper in one line",
        """
def save_on_master(*args):
¶    if RANK[0] == 0: torch.save(*args)
def main(rank):
    save_on_master(STATE, PATH)
""",
    ),
    Shape("partial", "keep = functools.partial(torch.save, pickle_protocol=4)\n" + _MAIN + "¶        keep(STATE, PATH)"),
    Shape("partial with the state", _MAIN + "        save = functools.partial(torch.save, STATE)\n¶        save(PATH)"),
    Shape("partial with the path", _MAIN + "        save = functools.partial(torch.save, f=PATH)\n¶        save(STATE)", ()),
    Shape("lambda", "¶keep = lambda state, path: torch.save(state, path)\n" + _MAIN + "        keep(STATE, PATH)"),
    Shape("lambda with *args", "¶keep = lambda *args: torch.save(*args)\n" + _MAIN + "        keep(STATE, PATH)", ()),
    Shape(
        "method",
        """
class Keeper:
    path = PATH
    def keep(self, state):
¶        torch.save(state, self.path)
def main(rank):
    if rank == 0:
        Keeper().keep(STATE)
""",
    ),
    Shape(
        "classmethod",
        """
class Keeper:
    @classmethod
    def keep(cls, *args):
¶        torch.save(*args)
def main(rank):
    if rank == 0:
        Keeper.keep(STATE, PATH)
""",
    ),
    Shape(
        "staticmethod",
        """
class Keeper:
    @staticmethod
    def keep(state, path=PATH):
¶        torch.save(state, path)
def main(rank):
    if rank == 0:
        Keeper.keep(STATE)
""",
    ),
    Shape("nested call", _MAIN + "¶        print(torch.save(STATE, PATH))"),
    Shape(
        "several lines",
        "import os\n"
        + _MAIN
        + "¶        torch.save(\n            STATE,\n            os.path.join(\n                FOLDER, 'model.pth'\n            ),\n        )",
    ),
    Shape("conditional expression", "def main(rank):\n¶    torch.save(STATE, PATH) if rank == 0 else None"),
    Shape("boolean expression", "def main(rank):\n¶    rank == 0 and torch.save(STATE, PATH)"),
    Shape("with open", _MAIN + "        with open(PATH, 'wb') as file:\n¶            torch.save(STATE, file)", ("DDP503",)),
    Shape("with open of a path", _MAIN + "        with pathlib.Path(PATH).open('wb') as file:\n¶            torch.save(STATE, file)", ("DDP503",)),
    Shape("file that is closed later", _MAIN + "        file = open(PATH, 'wb')\n¶        torch.save(STATE, file)\n        file.close()", ()),
    Shape("loop", _MAIN + "        for path in (PATH,):\n¶            torch.save(STATE, path)"),
    Shape("loop in one line", _MAIN + "¶        for path in (PATH,): torch.save(STATE, path)"),
    Shape("comprehension", _MAIN + "¶        assert [torch.save(state, path) for state, path in [(STATE, PATH)]] == [None]"),
    Shape("import of the name", "from torch import save\n" + _MAIN + "¶        save(STATE, PATH)"),
    Shape("import of the module under another name", "import torch as t\n" + _MAIN + "¶        t.save(STATE, PATH)"),
    Shape("if of one line", "def main(rank):\n¶    if rank == 0: torch.save(STATE, PATH)"),
    Shape("path that is new each time", _MAIN + "        paths = iter([PATH])\n¶        torch.save(STATE, next(paths))"),
    Shape(
        "path that is new each time, in one line",
        "PATHS = iter([PATH])\ndef main(rank):\n¶    if rank == 0: torch.save(STATE, next(PATHS))",
        ("DDP503",),
    ),
    Shape("chosen from a table", "KEEP = {'torch': torch.save}\n" + _MAIN + "¶        KEEP['torch'](STATE, PATH)", ()),
    Shape("wrapper", "def again(work, *args):\n¶    work(*args)\n" + _MAIN + "        again(torch.save, STATE, PATH)", ()),
)
