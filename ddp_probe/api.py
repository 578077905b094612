"""What programs and notebooks use, and every command that reads and judges a run: read() and diagnose(). docs/api.md says what is stable."""

import contextlib
import os
import weakref
from typing import Callable, Dict, List, Optional, Sequence, Union

from ddp_probe.judging import judge, site_rules
from ddp_probe.judging.rule import Evidence, Finding, Undecided
from ddp_probe.judging.rules import modules, rule_of
from ddp_probe.reading import bundled, load_run, remote
from ddp_probe.reading.model import Run
from ddp_probe.shared.errors import ProbeError, UsageError

__all__ = ["Diagnosis", "Evidence", "Finding", "ProbeError", "Run", "Undecided", "diagnose", "read"]

_FRAME = '<iframe srcdoc="%s" sandbox="allow-scripts" title="ddp_probe" style="width: 100%%; height: 36rem; border: 0; resize: vertical"></iframe>'


class Diagnosis(judge.Diagnosis):
    """What the rules say of one run: verdict, findings, undecided, and the run itself."""

    __slots__ = ()

    def to_json(self, indent: Optional[int] = 2) -> str:
        """Return what `report --json` prints; docs/report.json is its schema."""
        from ddp_probe.showing import as_json

        with bundled.within(self.run.bundle):
            return as_json.text(self, indent)

    def __repr__(self) -> str:
        """Say what `report --brief` prints."""
        from ddp_probe.showing import brief_form

        with bundled.within(self.run.bundle):
            return "\n".join(brief_form.lines(self))

    def _repr_html_(self) -> Optional[str]:
        """Return the page of `report --html` in a separate frame, for a notebook; without jinja2 the notebook shows the text."""
        import html

        try:
            from ddp_probe.showing.html import html_page
        except ImportError:
            return None

        with bundled.within(self.run.bundle):
            return _FRAME % html.escape(html_page.text(self))


def read(*paths: "Union[str, os.PathLike[str]]", progress: Optional[Callable[[int, int], None]] = None, cores: int = 0) -> Run:
    """Read a run: its folder, files of it, a bundle, folds or a plain log; the newest run if no path is given.

    progress is called with the bytes read and all bytes; cores limits the cores that are used, 0 stands for all of them.
    """
    named = [_named(path) for path in paths]
    with contextlib.ExitStack() as stack:
        named = remote.brought(named, stack)
        bundle = bundled.unpack(named, stack)
        with bundled.reading(bundle) if bundle is not None else contextlib.nullcontext(named) as inside:
            run = load_run.load(inside, progress, cores)
        weakref.finalize(run, stack.pop_all().close)  # What a bundle was unpacked to goes with the run.
    return run


def diagnose(run: Run, *, rules: Sequence[str] = ()) -> Diagnosis:
    """Ask the rules about a run: all of them, or those with these ids or names."""
    if not isinstance(run, Run):
        raise TypeError("diagnose() takes what read() returns, not %s: diagnose(read(path))" % type(run).__name__)
    with bundled.within(run.bundle):
        return Diagnosis(*judge.judge(run, _chosen([rules] if isinstance(rules, str) else rules)))


def _named(path: "Union[str, os.PathLike[str]]") -> str:
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError("read() takes paths one by one, as in read(*paths), not %s" % type(path).__name__)
    name = os.path.expanduser(os.fsdecode(path))
    if "\0" in name:
        raise UsageError("The path %r holds a null character." % name, "No file has such a name: check where the path comes from.")
    return name


def _chosen(names: Sequence[str]) -> List[object]:
    by_name: Dict[str, object] = {}
    for module in (*site_rules.loaded().rules, *modules()):
        rule = rule_of(module)
        by_name[rule.id] = by_name[rule.slug] = module
    unknown = [name for name in names if name not in by_name]
    if unknown:
        raise UsageError("Unknown rule %r." % unknown[0], "'python -m ddp_probe explain --all' lists the rules.")
    return [by_name[name] for name in names]
