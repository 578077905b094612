"""A checkpoint that others can read half written, and that a power cut leaves half written."""

import os
from typing import Any, Optional

from ddp_probe.shared.ours import suppress
from ddp_probe.traced.facts.checkpoint import path_of
from ddp_probe.traced.patching import Call, Change, guard
from ddp_probe.traced.remedies._remedy import Remedy
from ddp_probe.traced.remedies._stage import Stage


class AtomicSave(Remedy):
    """A save to a path is written beside it, flushed to the disk, and renamed to the path in one step."""

    word = "atomic-save"
    order = 100
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
        return self._change(parameter, path, stage)

    def _path(self, call: Call, given: Any) -> str:
        """Return the path of the save; empty for a stream, and for a path that cannot name a file."""
        path = path_of(given) if not isinstance(given, bytes) else None
        if path is None and hasattr(type(given), "__fspath__"):
            self.declined(call, "the path is an object of the job's own class, whose code is not run to get it")
        return path if path and os.path.basename(path) and "\0" not in path else ""

    def _change(self, parameter: str, path: str, stage: Stage) -> Change:
        after = {parameter: stage.file, "then": "renamed to %s" % stage.path}
        return Change(
            {parameter: path},
            after,
            "a save to a path is not atomic",
            arguments={parameter: stage.file},
            commit=stage.commit,
            rollback=stage.clear,
            precaution=True,
        )


def _make_folder(path: str) -> None:
    """Make the folder, as mmengine's own save does first; mmengine expands ~ here, but not when it opens the file."""
    if not path.startswith("~"):
        with suppress(OSError):
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)


REMEDY = AtomicSave
