"""A checkpoint that others can meet half written, and that a power cut leaves so."""

import os
from typing import Any, Optional

from ddp_probe.facts.checkpoint import path_of
from ddp_probe.ours import suppress
from ddp_probe.patching import Call, guard
from ddp_probe.patching.override import Change
from ddp_probe.remedies._remedy import Remedy
from ddp_probe.remedies._stage import Stage


class AtomicSave(Remedy):
    """A save to a path goes beside it, is flushed to the disk, and takes the path's place in one step."""

    name = "fix.atomic-save"
    targets = ("torch.serialization:save", "mmengine.fileio.backends.local_backend:LocalBackend.put")
    when = "Always, for a save to a path; streams are the job's own."
    for_good = "torch.save(state, path + '.tmp'); os.replace(path + '.tmp', path)"

    def prepare(self, call: Call) -> Optional[Change]:
        """Let the save write into a folder of its own beside the path."""
        parameter = "filepath" if call.target.qualname.endswith("put") else "f"
        given = call.arguments().get(parameter)
        path = self._path(call, given)
        if not path:
            return None
        if parameter == "filepath":
            _make_folder(path)
        stage = Stage.beside(os.path.realpath(path), lambda because: guard.run(self.name, self.declined, call, because))
        if isinstance(stage, str):
            if stage:
                self.declined(call, stage)
            return None
        try:
            return self._change(call, parameter, path, stage)
        except BaseException:
            stage.clear()
            raise

    def _path(self, call: Call, given: Any) -> str:
        """Return where the save goes; empty for a stream, and for what no file can be made of."""
        path = path_of(given) if not isinstance(given, bytes) else None
        if path is None and hasattr(type(given), "__fspath__"):
            self.declined(call, "the path is of a class of the job's own, whose code is not run to ask for it")
        return path if path and os.path.basename(path) and "\0" not in path else ""

    def _change(self, call: Call, parameter: str, path: str, stage: Stage) -> Change:
        change = Change({parameter: stage.file})
        change.done, change.left = stage.commit, stage.clear
        after = {parameter: stage.file, "then": "renamed to %s" % stage.path}
        self.applied(call, {parameter: path}, after, "a save to a path is not atomic")
        return change


def _make_folder(path: str) -> None:
    """Do what mmengine's own save does first; it takes ~ for the home here, and not when it opens the file."""
    if not path.startswith("~"):
        with suppress(OSError):
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)


REMEDY = AtomicSave
