"""No line of a traced process is written past the chain and its masks: the syntax trees say who writes to a file or a socket."""

import ast
import re
from pathlib import Path
from typing import Any, Iterator, Set, Tuple

_TRACED = ("activation", "traced")
_WRITES = {"write", "writelines", "print", "pwrite", "write_text", "write_bytes", "dump", "writev", "pwritev", "pack_into", "write_field", "mmap"}
_WRITES |= {"send", "sendall", "sendto", "sendmsg", "sendfile", "connect", "create_connection", "symlink", "setxattr", "posix_spawn", "Popen"}
_ALLOWED = {
    ("traced/record/chain.py", "self._proxy_to_logger"),
    ("traced/record/files.py", "os.write"),  # the sink of a log
    ("traced/record/recorder.py", "os.write"),  # the sink of a model's list
    ("traced/record/recorder.py", "rows_logger(whole).write"),
    ("traced/record/ledger_memory.py", "os.pwrite"),  # the ledger's memory, into its file
    ("traced/record/ledger_memory.py", "mmap.mmap"),  # that memory
    ("traced/record/ledger_memory.py", "HEADER.write"),  # numbers
    ("traced/record/ledger_memory.py", "HEADER.write_field"),  # a number
    ("traced/record/ledger_memory.py", "self.map[]"),  # a text, masked
    ("traced/ledger/groups.py", "SUM.pack_into"),  # numbers
    ("traced/ledger/phases.py", "row_flags.pack_into"),
    ("traced/record/files.py", "os.symlink"),  # the run's name
    ("traced/record/brief.py", "os.posix_spawn"),  # a reader, whose lines are said through the chain
    ("traced/remedies/atomic_save.py", "os.setxattr"),  # of the job's own checkpoint
    ("traced/hangs/others.py", "os.pwrite"),  # the same, by the launcher
    ("traced/record/stderr.py", "os.write"),  # the sink of stderr
    ("traced/record/stderr.py", "_logger.write"),
    ("traced/record/files.py", "os.write"),  # the asterisk of a .gitignore
    ("traced/record/recorder.py", "self.write"),
    ("traced/ledger/barriers.py", "self._recorder.write"),
    ("traced/record/recorder.py", "self.writer.write"),
    ("traced/record/writer.py", "recorder.write"),
    ("activation/lifecycle.py", "sys.stderr.write"),  # "not active", when structlog itself may be what is missing
    ("traced/patching/undo.py", "slot.write"),  # an attribute, not a file
    ("traced/patching/registry.py", "patch_site.slot.write"),
    ("traced/patching/registry.py", "alias.write"),
}


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _stores(tree: ast.AST, source: str) -> Iterator[str]:
    """Yield what is stored into a map, as a writer."""
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else []
        for place in (target.value for target in targets if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Slice)):
            name = ast.get_source_segment(source, place) or ""
            if name.rsplit(".", 1)[-1] in ("map", "mapped"):
                yield name + "[]"


def _last(node: ast.Call) -> str:
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


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
            tree = ast.parse(source)
            found |= {(path.relative_to(package).as_posix(), name) for name in _stores(tree, source)}
            for call in _calls(tree):
                if _last(call) in _WRITES | {"_proxy_to_logger"}:
                    found.add((path.relative_to(package).as_posix(), _name(call, source)))
    return found


def test_nothing_writes_past_the_chain(repo: Path) -> None:
    """Every call that writes is a sink of the chain, a step on the way to one, or no line at all."""
    assert _writers(repo / "ddp_probe") == _ALLOWED


_MASKS = re.compile(r"\b_?(?:through|masked|mask)\b")


def _byte_makers(path: Path) -> Iterator[Tuple[str, bool]]:
    """Yield each function that turns text or values into bytes, and whether it asks the masks."""
    source = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            text = ast.get_source_segment(source, node) or ""
            if ".encode" in text:
                yield "%s.%s" % (path.stem, node.name), _MASKS.search(text) is not None


def test_what_makes_bytes_for_the_sinks_masks_them(repo: Path) -> None:
    """Lines, rows, texts of stderr and of the ledger become bytes in four places, and each of them asks the masks first."""
    made = dict(one for path in sorted((repo / "ddp_probe" / "traced" / "record").glob("*.py")) for one in _byte_makers(path))
    assert {name for name, masks in made.items() if masks} == {
        "chain._text",
        "render.render",
        "render.rows",
        "ledger_memory._append",
    }
    # Text for render(), and a digest.
    assert {name for name, masks in made.items() if not masks} == {"render._plain", "recorder._digest"}


def test_stderr_is_masked(run_python: Any) -> None:
    """A warning that holds a password is said without it."""
    done = run_python(
        ["-c", "from ddp_probe.traced.record import stderr; stderr.say('refused: https://bob:hunter2@host/x?token=hunter2 password=hunter2')"]
    )
    assert done.stderr == "ddp_probe: refused: https://***@host/x?*** password=***\n"


def test_every_sink_has_a_logger_of_structlogs(repo: Path) -> None:
    """The three loggers are made by structlog's wrap_logger, in one place of the package."""
    made = [
        path.relative_to(repo).as_posix()
        for path in sorted((repo / "ddp_probe").rglob("*.py"))
        if any(_last(call) == "wrap_logger" for call in _calls(ast.parse(path.read_text(encoding="utf-8"))))
    ]
    assert made == ["ddp_probe/traced/record/chain.py"]
