"""The forms of a report, by name, and the files that it writes besides what it prints. A form's module is imported only when it is used.

A file is streamed, whole or not at all, and never over a file of somebody else. Its module has chunks(diagnosis), a generator of text that returns
a note for the person.
"""

import contextlib
import importlib
import io
import os
import stat
from typing import IO, Generator, Iterator, List, NamedTuple, Tuple

from ddp_probe.shared.errors import UnusableError, UsageError
from ddp_probe.shared.whole_file import whole_file
from ddp_probe.showing.remark import remark
from ddp_probe.wording.text import say
from ddp_probe.wording.words import size

TERMINAL, JSON, BRIEF, GITHUB, JUNIT = "terminal", "json", "brief", "github", "junit"


class PrintedForm(NamedTuple):
    """One form: its name, its module, and whether --follow can print it again and again."""

    name: str
    module: str
    follows: bool


FORMS: Tuple[PrintedForm, ...] = (
    PrintedForm(TERMINAL, "ddp_probe.showing.terminal", follows=True),
    PrintedForm(JSON, "ddp_probe.showing.as_json", follows=True),
    PrintedForm(BRIEF, "ddp_probe.showing.brief_form", follows=True),
    PrintedForm(GITHUB, "ddp_probe.showing.github", follows=False),
    PrintedForm(JUNIT, "ddp_probe.showing.junit", follows=False),
)
NAMES = tuple(form.name for form in FORMS)


def show(diagnosis: object, name: str) -> None:
    """Print a diagnosis in the form of this name."""
    importlib.import_module(_form(name).module).show(diagnosis)


def refuse_to_follow(name: str) -> None:
    """Refuse a form that is one whole document: printed twice, it is not valid."""
    if not _form(name).follows:
        follow = ", ".join(form.name for form in FORMS if form.follows)
        raise UsageError(
            say(
                "--follow cannot print the form {form}, which is printed once, when the job has ended.",
                form=name,
            ),
            say("Leave out --follow, or choose one of these forms: {forms}.", forms=follow),
        )


def _form(name: str) -> PrintedForm:
    return next(form for form in FORMS if form.name == name)


_PACKED = ".gz"
_HEAD = 4096  # The sign of a form is among the first characters of its files.
Chunks = Generator[str, None, str]


class FileForm(NamedTuple):
    """One form of a file: its option, its module, what is in the first characters of each such file, and what the person does with it."""

    option: str
    module: str
    sign: str
    help: str
    then: str
    needs: str = ""  # A package that nothing else needs; the extra that brings it has the name of the option.


FILES: Tuple[FileForm, ...] = (
    FileForm(
        "--trace",
        "ddp_probe.showing.trace",
        '"ddp_probe trace"',
        "also write the run over time to FILE, as JSON for Perfetto and chrome://tracing; compressed if FILE ends in .gz",
        "open it in Perfetto (ui.perfetto.dev) or chrome://tracing",
    ),
    FileForm(
        "--html",
        "ddp_probe.showing.html.html_page",
        '<meta name="generator" content="ddp_probe">',
        "also write the report to FILE as one HTML page that needs no network, with ranks and devices, lanes over time and quoted lines of the logs",
        "open it in a browser",
        needs="jinja2",
    ),
)


class WrittenFile(NamedTuple):
    """A file that a command line asks for."""

    form: FileForm
    path: str


def wanted_files(options: "dict[str, object]") -> List[WrittenFile]:
    """Return the files that parsed options ask for."""
    wanted = [(form, options.get(form.option.strip("-"))) for form in FILES]
    return [WrittenFile(form, str(path)) for form, path in wanted if path is not None]


def refuse_files_to_follow(files: List[WrittenFile]) -> None:
    """Refuse to write what is drawn once, when the job has ended."""
    for file in files:
        raise UsageError(
            say("{option} writes one file, and --follow prints while the job runs.", option=file.form.option),
            say(
                "Leave out --follow, or run 'report {option} FILE' again when the job has ended.",
                option=file.form.option,
            ),
        )


def refuse_files(files: List[WrittenFile]) -> None:
    """Refuse a place that cannot be written, and a file that no report has written, before anything is read."""
    for file in files:
        _need(file.form)
        path = _place(file)
        try:
            status = os.stat(path)
        except FileNotFoundError:
            folder = os.path.dirname(path)
            if not os.path.isdir(folder):
                raise _unwritten(file, say("There is not a folder {folder}.", folder=folder)) from None
            if not os.access(folder, os.W_OK | os.X_OK):
                raise _unwritten(file, say("The folder {folder} is not writable.", folder=folder)) from None
            continue
        except OSError as exc:
            raise _unwritten(file, "%s." % exc.strerror) from exc
        if not stat.S_ISREG(status.st_mode):
            raise _unwritten(
                file,
                say("It is a folder.") if stat.S_ISDIR(status.st_mode) else say("It is not a regular file."),
            )
        if status.st_size and file.form.sign not in _head(path):
            by = file.form.option
            raise _unwritten(file, say("It is there already, and 'report {option}' has not written it.", option=by))


def _need(form: FileForm) -> None:
    try:
        if form.needs:
            importlib.import_module(form.needs)
    except ImportError as exc:
        raise UnusableError(
            what=say("report {option} cannot write its file.", option=form.option),
            why=say(
                "{package} is not installed; the other forms of the report do without it.",
                package=exc.name,
            ),
            what_to_do=say(
                "Install it where the logs are read: pip install 'ddp-probe[{extra}]'",
                extra=form.option.strip("-"),
            ),
        ) from exc


def write_files(files: List[WrittenFile], diagnosis: object) -> None:
    """Write the files, and say on stderr where each is and what to do with it."""
    for file in files:
        note = _write_file(file, importlib.import_module(file.form.module).chunks(diagnosis))
        about = say("; {note}", note=note) if note else ""
        template = "Written: {path}, {size}{about}; {then}."
        remark(
            say(template, path=file.path, size=size(os.path.getsize(_place(file))), about=about, then=say(file.form.then)),
            by="",
        )


def _write_file(file: WrittenFile, chunks: Chunks) -> str:
    """Write a file; return the note."""
    path = _place(file)
    try:
        with whole_file(path, 0o644) as raw:
            return _stream_file(raw, chunks, packed=path.endswith(_PACKED))
    except OSError as exc:
        raise _unwritten(file, "%s." % (exc.strerror or exc)) from exc


def _stream_file(raw: IO[bytes], chunks: Chunks, *, packed: bool) -> str:
    import gzip

    with contextlib.ExitStack() as stack:
        target = stack.enter_context(gzip.GzipFile("", "wb", 6, raw, mtime=0)) if packed else raw
        text = io.TextIOWrapper(target, encoding="utf-8", errors="backslashreplace", newline="\n")
        stack.callback(text.detach)
        noted: List[str] = []
        text.writelines(_noting(chunks, noted))
        text.flush()
    return noted[0]


def _noting(chunks: Chunks, noted: List[str]) -> Iterator[str]:
    noted.append((yield from chunks))


def _place(file: WrittenFile) -> str:
    """Return where the file is written: a link keeps pointing at it."""
    return os.path.realpath(file.path)


def _head(path: str) -> str:
    """Return the first characters of a file; an empty text if it cannot be read."""
    import gzip

    try:
        with (gzip.open if path.endswith(_PACKED) else open)(path, "rb") as file:
            return bytes(file.read(_HEAD)).decode("utf-8", "replace")
    except (OSError, EOFError):
        return ""


def _unwritten(file: WrittenFile, why: str) -> UnusableError:
    return UnusableError(
        what=say("{option} {path} cannot be written.", option=file.form.option, path=file.path),
        why=why,
        what_to_do="Name another file.",
    )
