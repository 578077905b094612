"""What the tests of the promises have in common: the programs' folder, the planted secrets, and what one run leaves."""

from pathlib import Path
from typing import Any, Dict, List, NamedTuple

PROGRAMS = Path(__file__).parent / "programs"
SECRET = "pl4ntedS3cretNobodySees"
SECRETS = {
    "NCCL_SECRET_TOKEN": SECRET,
    "TORCH_API_KEY": SECRET,
    "MASTER_PASSWORD": SECRET,
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "SOMEBODYS_OWN": SECRET,
    "GLOO_PROXY": "http://user:%s@proxy:3128/?token=%s" % (SECRET, SECRET),
}
ARGUMENTS = ["--api-key", SECRET, "--password=" + SECRET, "https://user:%s@host/?token=%s" % (SECRET, SECRET)]
WAYS = ("wrap", "chained", "nested", "thread", "leave", "interrupted", "terminated", "init_dist", "assertion")


def files_below(root: Path) -> List[Path]:
    """Return every file of every run."""
    return [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]


class Training(NamedTuple):
    """One launch of the training program."""

    done: Any
    facts: List[Dict[str, Any]]
    runs: Path
    imported: str


class Failure(NamedTuple):
    """How one way of the failing program ended."""

    code: int
    out: str
    err: str
    runs: Path
