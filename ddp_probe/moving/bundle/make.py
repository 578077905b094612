"""Makes a bundle: reads and judges the run, writes what goes in into a separate folder, masked and bounded, and packs it."""

import contextlib
import os
import platform
import re
import tempfile
import time
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

import msgspec

import ddp_probe
from ddp_probe.judging.judge import Diagnosis, judge
from ddp_probe.moving.bundle import bundle_pages, contents, stage
from ddp_probe.moving.bundle.stage import Staged
from ddp_probe.moving.bundle.thinned_source import places, thinned
from ddp_probe.reading import alive, bundled, find, job_source, process_files
from ddp_probe.reading.bundled import HeldFile, Manifest
from ddp_probe.reading.load_run import load
from ddp_probe.reading.model import Run
from ddp_probe.shared.errors import UnusableError, UsageError
from ddp_probe.shared.masks import MASK
from ddp_probe.showing.masker import Masker
from ddp_probe.wording.text import say

MOST_BYTES = 20 << 20
_TRIES = 6
Progress = Callable[[int, int], None]


class BundleRequest(NamedTuple):
    """What a person asked for."""

    paths: Sequence[str]
    output: str = ""
    most: int = MOST_BYTES
    source: bool = True  # Whether the files of the job that the report quotes go in.
    writes: bool = False  # Whether it will be put in its place, and may then overwrite a file there.
    force: bool = False


class Prepared(NamedTuple):
    """A bundle that is packed and not yet in its place."""

    manifest: Manifest
    packed: str  # The archive, in a temporary folder.
    size: int
    output: str
    environment: str  # Markdown.
    differs: str  # How the report over the bundle differs from the one over the run; empty if it does not.


@contextlib.contextmanager
def prepared(request: BundleRequest, progress: Optional[Progress] = None) -> Iterator[Prepared]:
    """Make the archive in a temporary folder, so that everything about it can be said before it is written anywhere."""
    with tempfile.TemporaryDirectory(prefix="ddp_probe-bundle-") as scratch:
        try:
            bundle = _Maker(request, scratch, progress).made()
        except OSError as exc:
            raise UnusableError(
                what="The bundle cannot be made.",
                why="%s: %s" % (exc.strerror or exc, exc.filename or scratch),
                what_to_do="It is made in a temporary folder; TMPDIR names another one.",
            ) from exc
        yield bundle


class _Reading(NamedTuple):
    """What a reader of the bundle would see."""

    diagnosis: Diagnosis
    said: str


class _Maker:
    """One bundle in the making."""

    def __init__(self, request: BundleRequest, scratch: str, progress: Optional[Progress]) -> None:
        for path in filter(bundled.is_bundle, request.paths):
            raise UsageError(
                say("{path} is a bundle already.", path=path),
                "Name the run itself, or send the bundle as it is.",
            )
        self._request = request
        self._progress = progress
        self._masker = Masker(os.environ)
        self._sources = find.files(request.paths, "bundle")
        self._contents = contents.of(self._sources)
        if not self._contents.parts:
            raise UnusableError(what="There is nothing to bundle.", why="None of the files can be read.", what_to_do="'report' says why.")
        self.name = "ddp_probe-" + _file_name(self._masker.text(os.path.basename(self._contents.paths[0]), "the name of a file"))
        self.output = request.output or self.name + ".tar.gz"
        if request.writes:
            stage.refuse_taken(self.output, force=request.force)
        self._root = os.path.join(scratch, self.name)
        self._packed = os.path.join(scratch, "packed")
        self._manifest = Manifest(bundled.VERSION, ddp_probe.__version__, launch=self._sources.launch)
        os.mkdir(self._root, 0o700)

    def made(self) -> Prepared:
        """Return the bundle."""
        with job_source.noted() as sources:
            run = load(self._request.paths, self._progress)
            is_here = platform.node() in {process.host for process in (*run.processes, *run.launchers)}
            if is_here:
                bundle_pages.begin(run)
            first = judge(run)
            bundle_pages.everything_said(first)
        files = self._stage()
        self._describe(run)
        files += self._quote(sources) if sources and self._request.source else []
        return self._fitted(files, first, is_here=is_here)

    def _stage(self) -> List[Staged]:
        """Write the files of the run, masked."""
        staged: List[Staged] = []
        done, everything = 0, sum(process_files.size(member.file) for member in self._contents.parts)
        for member in self._contents.parts:
            place = stage.place_of(member, self._masker)
            try:
                staged.append(stage.part(member, place, self._root, self._masker))
            except stage.LeftOutError as exc:
                self._manifest.left_out[place] = self._masker.text(str(exc), "why a file is left out")
            done += process_files.size(member.file)
            if self._progress is not None:
                self._progress(min(done, everything), everything)
        return staged

    def _describe(self, run: Run) -> None:
        """Note what only this host, and only now, can tell of the run."""
        manifest, text = self._manifest, self._masker.text
        manifest.run = text(run.name, "the run's name")
        manifest.made = time.time() if run.running else run.read_at
        where = "the name of a file"
        manifest.paths = ["/".join(text(name, where).replace(MASK, "masked") for name in path.split("/")) for path in self._contents.paths]
        manifest.unreadable = {text(path, where): why for path, why in self._contents.unreadable.items()}
        for process in (*run.processes, *run.earlier):
            if alive.alive(process):
                start = process.started
                manifest.states["%s/%d" % (text(process.host, "a host's name"), process.pid)] = (
                    alive.kernel_state(process.pid, process.host, start.born or 0, start.boot) or "R"
                )
        for name in self._contents.others:
            manifest.left_out[text(name, where)] = say("It is not a file of the probe.")

    def _quote(self, sources: Dict[str, job_source.JobFile]) -> List[Staged]:
        """Write of the job's files what the report looks into; a whole file only if the report would be another one without the rest."""
        for number, path in enumerate(sorted(sources)):
            name = "source/%d-%s" % (number, _file_name(os.path.basename(path)))
            self._manifest.sources[self._masker.text(path, "a path")] = name
        masked = [self._masker.lines(sources[path].text.encode("utf-8"), "the job's source") for path in sorted(sources)]
        whole = self._written(sources, masked)
        before = self._reading()
        lines = places(before.diagnosis)
        shorter = [_thinned(data, path, lines) for data, path in zip(masked, self._manifest.sources)]
        part = self._written(sources, shorter)
        if self._reading().said == before.said:
            return [staged._replace(cut=len(data) - staged.size) for staged, data in zip(part, masked)]
        return self._written(sources, masked) if part != whole else whole

    def _written(self, sources: Dict[str, job_source.JobFile], texts: List[bytes]) -> List[Staged]:
        rows = zip(self._manifest.sources.values(), texts, (sources[path].changed for path in sorted(sources)))
        return [stage.write(self._root, place, data, contents.SOURCE, changed) for place, data, changed in rows]

    def _reading(self) -> _Reading:
        """Read and judge what has been staged."""
        with bundled.reading(bundled.OpenBundle(os.path.basename(self.output), self._root, self._manifest)) as inside:
            diagnosis = judge(load(inside))
            return _Reading(diagnosis, bundle_pages.everything_said(diagnosis))

    def _fitted(self, files: List[Staged], first: Diagnosis, *, is_here: bool) -> Prepared:
        """Cut what is too large until the archive is small enough."""
        limit, left_out = self._request.most, self._manifest.left_out
        for _ in range(_TRIES):
            fitted = stage.fit(self._root, files, limit * 9 // 10)
            files = fitted.files
            left_out.update(fitted.left_out)
            if not any(staged.kind in (contents.LOG, contents.TEXT) for staged in files):
                break
            with bundled.reading(bundled.OpenBundle(os.path.basename(self.output), self._root, self._manifest)) as inside:
                diagnosis = judge(load(inside))
                pages = bundle_pages.of(diagnosis, self._masker, is_here=is_here)
            size = self._pack(files, pages)
            if size <= self._request.most:
                return Prepared(self._manifest, self._packed, size, self.output, pages[bundle_pages.ENVIRONMENT], _difference(first, diagnosis))
            limit = limit * 3 // 4
        raise UnusableError(
            what=say("The bundle does not fit into {most} bytes.", most=self._request.most),
            why="Its logs find no room in it.",
            what_to_do="Allow more with --max-bytes, or name single files of the run.",
        )

    def _pack(self, files: Sequence[Staged], pages: Dict[str, str]) -> int:
        """Write the archive, and return its size."""
        manifest = self._manifest
        manifest.masked, manifest.already_masked = dict(self._masker.masked), dict(self._masker.already)
        manifest.files = [HeldFile(staged.place, staged.kind, staged.size, staged.cut) for staged in sorted(files, key=lambda staged: staged.place)]
        manifest.files += [HeldFile(name, contents.OWN, len(text.encode("utf-8"))) for name, text in pages.items()]
        described = msgspec.json.format(msgspec.json.encode(manifest, enc_hook=str), indent=1)
        for name, data in ((bundled.MANIFEST, described), *((name, text.encode("utf-8")) for name, text in pages.items())):
            stage.write(self._root, name, data, contents.OWN, manifest.made)
        with open(self._packed, "wb") as target:
            stage.pack(self._root, [bundled.MANIFEST, *pages, *sorted(staged.place for staged in files)], target)
        return os.path.getsize(self._packed)


def _thinned(data: bytes, path: str, lines: Set[Tuple[str, int]]) -> bytes:
    """Return what the report looks into; up to Python 3.8 a site may name the file without its folder."""
    kept = {line for file, line in lines if file == path or path.endswith("/" + file)}
    return thinned(data.decode("utf-8"), kept).encode("utf-8")


def _file_name(text: str) -> str:
    """Return a text as a file's name."""
    return re.sub(r"[^\w.+-]+", "_", text.replace(MASK, "masked"))[:100].strip("_.") or "run"


def _difference(first: Diagnosis, second: Diagnosis) -> str:
    """Say how the report over the bundle differs from that over the run: what was cut may have been the evidence."""
    run, other = _in_short(first), _in_short(second)
    if run == other:
        return ""
    template = "The report over the run says {of_run}, and over this bundle {of_bundle}. --max-bytes lets more of the run into it."
    return say(template, of_run=run, of_bundle=other)


def _in_short(diagnosis: Diagnosis) -> str:
    return " and ".join(finding.id for finding in diagnosis.findings) or diagnosis.verdict
