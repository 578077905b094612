"""Files that are often in place of a checkpoint, and pickles and arrays that torch did not write."""

import os
import re
import zlib
from typing import NamedTuple, Optional, Tuple

from ddp_probe.checkpoints import fill, stored_tensors
from ddp_probe.checkpoints.checkpoint_file import FileRange
from ddp_probe.checkpoints.judged import UNKNOWN, WHOLE, BrokenError, Damage, Judged
from ddp_probe.checkpoints.pickle_machine import Machine
from ddp_probe.checkpoints.pickle_stream import Blob, PickleStream
from ddp_probe.checkpoints.zip_archive import find_end
from ddp_probe.wording.text import say
from ddp_probe.wording.words import quoted

_LFS = re.compile(rb"version https://git-lfs\.github\.com/spec/v1\n.*?oid sha256:(?P<oid>[0-9a-f]{64})\nsize (?P<size>[0-9]{1,18})", re.S)


class Lookalike(NamedTuple):
    """A kind of file that is not a checkpoint, with what to do."""

    kind: str
    because: str
    what_to_do: str


EMPTY = Lookalike(
    "empty",
    say("The file is empty."),
    say("Copy or write it again. A save that was stopped leaves such a file; so does a disk that is full: df tells."),
)
HTML = Lookalike(
    "HTML page",
    say("It is an HTML page: a download got a web page in the checkpoint's place."),
    say("Download it again with the link of the file itself."),
)
ZEROS = Lookalike(
    "zeros",
    say("It begins with zeros: its size is on the disk, and its bytes are not. A host that stopped during the write leaves such a file."),
    say("Copy it again, or take an earlier checkpoint."),
)
_SHORTEST = 16  # Bytes; a file of torch has more.
_COMPRESSED = (
    (b"\x1f\x8b", "gzip", "gunzip"),
    (b"\xfd7zXZ\x00", "xz", "unxz"),
    (b"BZh", "bzip2", "bunzip2"),
    (b"\x28\xb5\x2f\xfd", "zstd", "unzstd"),
    (b"7z\xbc\xaf\x27\x1c", "7z", "7z x"),
)
_JOBLIB = b"joblib.numpy_pickle"
# A ModelProto: its version, then the producer's name or the graph, each with its length before it.
_ONNX = re.compile(rb"\x08[\x01-\x14](?:\x12[\x01-\x40][\x20-\x7e]+|\x3a)", re.S)
_TENSORFLOW_INDEX = b"\x57\xfb\x80\x8b\x24\x75\x47\xdb"  # The end of a table of LevelDB.
_TENSORFLOW = Lookalike(
    "TensorFlow",
    say("It is a part of a TensorFlow checkpoint; torch.load does not read it."),
    say("Read it with tf.train.load_checkpoint and its folder."),
)
_TENSORFLOW_SHARD = re.compile(r"\.data-\d{5}-of-\d{5}$")  # Values alone, which may well begin with zeros.
_TOKENIZER = Lookalike(
    "tokenizer", say("It is a tokenizer of Hugging Face, and holds no weights."), say("Name the file of the weights, such as model.safetensors.")
)
_HDF = b"\x89HDF\r\n\x1a\n"


def empty(judged: Judged) -> None:
    """Judge a file without a byte."""
    _say(judged, EMPTY)
    judged.broken(Damage(EMPTY.because))


def of_head(head: bytes) -> Optional[Lookalike]:
    """Return what a file is by its first bytes, if they are enough."""
    bare = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if bare[:14].lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        return HTML
    for begin, name, command in _COMPRESSED:
        if head.startswith(begin):
            return Lookalike(
                name,
                say("It is compressed with {name}, which torch.load does not read.", name=name),
                say("Expand it first: {command}.", command=quoted(command)),
            )
    if head.startswith(b"GGUF"):
        return Lookalike(
            "GGUF", say("It is a GGUF file, such as llama.cpp reads; torch.load does not read it."), say("Read it with the package gguf.")
        )
    if _ONNX.match(head):
        return Lookalike("ONNX", say("It is an ONNX model; torch.load does not read it."), say("Read it with onnx.load."))
    if _JOBLIB in head or (head[:1] == b"\x78" and _JOBLIB in _expanded(head)):
        return Lookalike("joblib", say("It is a file of joblib; torch.load does not read it."), say("Read it with joblib.load."))
    if head[4:8] == b"TFL3":
        return Lookalike(
            "TensorFlow Lite", say("It is a TensorFlow Lite model; torch.load does not read it."), say("Read it with tf.lite.Interpreter.")
        )
    if head[257:262] == b"ustar":
        return Lookalike("tar", say("It is a tar archive, which torch.load does not read."), say("Expand it first: tar -xf."))
    if head.startswith(_HDF):
        return Lookalike("HDF5", say("It is an HDF5 file, such as Keras writes; torch.load does not read it."), say("Read it with h5py."))
    return None


def _expanded(head: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(head)
    except zlib.error:
        return b""


def of_folder(folder: str) -> Tuple[str, str]:
    """Say what a folder without a checkpoint of torch holds, and what to do; two empty texts if it is nothing that is known."""
    try:
        held = set(os.listdir(folder))
    except OSError:
        return "", ""
    if "saved_model.pb" in held:
        return say("It is a TensorFlow model."), say("Read it with tf.saved_model.load.")
    if any(name.endswith(".index") and name[: -len("index")] + "data-00000-of-00001" in held for name in held):
        return say("It is a TensorFlow checkpoint."), say("Read it with tf.train.load_checkpoint.")
    if held & {"tokenizer.json", "tokenizer_config.json", "tokenizer.model"}:
        return _TOKENIZER.because, say("Name the folder of the weights.")
    if any(name.endswith(".onnx") for name in held):
        return say("It holds an ONNX model."), say("Read it with onnx.load.")
    return "", ""


def part_of(path: str) -> str:
    """Say to which checkpoint of several files a file belongs, by its name."""
    if path.endswith(("_model_states.pt", "_optim_states.pt")):
        return say("It is a part of a DeepSpeed checkpoint: zero_to_fp32.py, beside its folder, makes one file of all parts.")
    return ""


def judge(source: FileRange, judged: Judged, head: bytes) -> None:
    """Judge what is not a checkpoint of torch."""
    lookalike = of_head(source.read(0, 4096))
    if lookalike is None and (source.read(source.size - 8, 8) == _TENSORFLOW_INDEX or _TENSORFLOW_SHARD.search(judged.path)):
        lookalike = _TENSORFLOW
    if lookalike is None and _is_tokenizer(source.read(0, 1 << 16)):
        lookalike = _TOKENIZER
    if head.startswith(b"version https://git-lfs"):
        lookalike = _pointer(source.read(0, 1024))
    if lookalike is None and _is_text(source.read(0, 4096)):
        lookalike = Lookalike("text", say("It is a text file, not a checkpoint."), say("Name the checkpoint itself."))
    if lookalike is None and not head.strip(b"\0"):
        lookalike = ZEROS
    if lookalike is None and len(head) < _SHORTEST and head[:1] in (b"P", b"\x80"):
        judged.kind = "unknown"
        judged.broken(Damage(say("It has {count} bytes: the file was cut off, or its writer has not finished.", count=len(head)), "", len(head)))
        return
    if lookalike is None and find_end(source) is not None:
        judged.kind = "unknown"
        judged.broken(
            Damage(say("It ends like an archive, and does not begin like one: bytes were put before it, or its beginning was changed."), "", 0)
        )
        return
    if lookalike is None:
        judged.kind, judged.verdict = "unknown", UNKNOWN
        judged.because = say("It begins like none of the formats that torch, safetensors or numpy write.")
        judged.what_to_do = say("If it should be a checkpoint, its beginning is lost: copy it again.")
        return
    _say(judged, lookalike)
    if lookalike.kind in ("HTML page", "git-lfs pointer", "zeros"):
        judged.broken(Damage(lookalike.because))


def _pointer(head: bytes) -> Lookalike:
    """Return what a pointer of git-lfs says of the file in whose place it is."""
    pointer = _LFS.match(head)
    text = say("It is a pointer of git-lfs: the file itself was not downloaded.")
    if pointer is not None:
        text = say(
            "It is a pointer of git-lfs to a file of {size} bytes: the file itself was not downloaded.",
            size=int(pointer.group("size")),
        )
    return Lookalike("git-lfs pointer", text, say("Run 'git lfs pull' in its repository."))


def _say(judged: Judged, lookalike: Lookalike) -> None:
    judged.kind, judged.because, judged.what_to_do = lookalike


def _is_tokenizer(head: bytes) -> bool:
    return head.lstrip()[:1] == b"{" and all(key in head for key in (b'"added_tokens"', b'"model"', b'"version"'))


def _is_text(head: bytes) -> bool:
    try:
        text = head[: len(head) & ~3].decode("utf-8", "ignore")
    except UnicodeDecodeError:
        return False
    return bool(text) and sum(char.isprintable() or char in "\r\n\t" for char in text) > 0.95 * len(head) and b"\0" not in head


def pickle(source: FileRange, judged: Judged) -> None:
    """Judge a pickle that torch.save did not write."""
    lookalike = of_head(source.read(0, 4096))
    if lookalike is not None:
        judged.verdict = UNKNOWN
        _say(judged, lookalike)
        return
    judged.kind, judged.verdict = "pickle", WHOLE
    machine, stream = Machine(), PickleStream(source)
    try:
        root = machine.run(stream)
        fill.from_pickle(judged, root, machine, stored_tensors.read(root, machine.persistent))
    except BrokenError as exc:
        judged.broken(exc.fault)
        return
    judged.weights_only = None
    if type(root) in (int, float, Blob) and stream.tell() < source.size:
        judged.broken(Damage(say("It begins with a number that is not torch's magic number, and goes on."), "", 0))
        return
    judged.because = say("It is a pickle that torch.save did not write: torch.load refuses it, pickle.load reads it.")
    if stream.tell() < source.size:
        judged.remarks.append(say("{count} bytes follow the first pickle.", count=source.size - stream.tell()))


_SHAPE = re.compile(rb"'descr':\s*'(?P<descr>[^']{1,20})'.*?'shape':\s*\((?P<shape>[0-9, ]*)\)", re.S)


def numpy(source: FileRange, judged: Judged) -> None:
    """Judge an array that numpy.save wrote."""
    judged.kind, judged.verdict = "numpy array", WHOLE
    head = source.read(0, 1 << 16)
    wide = head[6:7] != b"\x01"
    length = int.from_bytes(head[8 : 12 if wide else 10], "little")
    start = (12 if wide else 10) + length
    match = _SHAPE.search(head[:start])
    if start > source.size:
        raise BrokenError(say("The file was cut off within its header."), say("the header"), source.size)
    if match is None:
        judged.because = say("Its header names no shape and type of numbers.")
        return
    shape = tuple(int(part) for part in match.group("shape").replace(b" ", b"").split(b",") if part)
    digits = re.sub(rb"[^0-9]", b"", match.group("descr"))
    needed = start + fill.product(shape) * int(digits or b"0")
    if digits and needed > source.size:
        judged.broken(Damage(say("The file was cut off: it has {count} bytes of {needed}.", count=source.size, needed=needed), "", source.size))
    judged.because = say("It is an array of numpy; torch.load does not read it.")
