"""No line of a traced process is written past the chain: the syntax trees of rings 0 and 1 say who writes to a file or to stderr."""

import ast
from pathlib import Path
from typing import Iterator, Set, Tuple

_TRACED = ("activation", "facts", "hangs", "ledger", "patching", "probes", "record", "remedies")
_WRITES = {"write", "writelines", "print", "pwrite", "write_text", "write_bytes", "dump"}
_ALLOWED = {
    ("record/_chain.py", "self._proxy_to_logger"),
    ("record/_file.py", "os.write"),  # the sink of a log
    ("record/_models.py", "os.write"),  # the sink of a model's list
    ("record/_models.py", "rows_logger(whole).write"),
    ("record/ledger.py", "os.pwrite"),  # the ledger's memory, into its file
    ("hangs/_held.py", "os.pwrite"),  # the same, by the launcher
    ("record/stderr.py", "os.write"),  # the sink of stderr
    ("record/stderr.py", "_logger.write"),
    ("record/latest.py", "os.write"),  # the asterisk of a .gitignore
    ("record/recorder.py", "self.write"),
    ("record/recorder.py", "self.writer.write"),
    ("record/recorder.py", "_models.write"),
    ("record/span.py", "recorder.write"),
    ("activation/lifecycle.py", "sys.stderr.write"),  # "not active", when structlog itself may be what is missing
    ("patching/undo/restore.py", "slot.write"),  # an attribute, not a file
    ("patching/undo/registry.py", "patch_site.slot.write"),
    ("patching/undo/registry.py", "alias.write"),
}


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _name(node: ast.Call, source: str) -> str:
    text = ast.get_source_segment(source, node.func)
    return " ".join((text or "").split())


def _writers(package: Path) -> Set[Tuple[str, str]]:
    found = set()
    for folder in _TRACED:
        for path in sorted((package / folder).rglob("*.py")):
            if "installer" in path.parts:  # no part of a traced process
                continue
            source = path.read_text(encoding="utf-8")
            for call in _calls(ast.parse(source)):
                name = _name(call, source)
                if name.rsplit(".", 1)[-1] in _WRITES | {"_proxy_to_logger"}:
                    found.add((path.relative_to(package).as_posix(), name))
    return found


def test_nothing_writes_past_the_chain(repo: Path) -> None:
    """Every call that writes is a sink of the chain, a step on the way to one, or no line at all."""
    assert _writers(repo / "ddp_probe") == _ALLOWED


def test_every_sink_has_a_logger_of_structlogs(repo: Path) -> None:
    """The three loggers are made by structlog's wrap_logger, in one place of the package."""
    made = [
        path.relative_to(repo).as_posix()
        for path in sorted((repo / "ddp_probe").rglob("*.py"))
        if any(_name(call, text).endswith("wrap_logger") for text in [path.read_text(encoding="utf-8")] for call in _calls(ast.parse(text)))
    ]
    assert made == ["ddp_probe/record/_chain.py"]
