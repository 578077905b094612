"""Knows what torch.load(weights_only=True) accepts by default in torch 2.13; a test compares it with torch."""

from typing import FrozenSet, List, Tuple

from ddp_probe.checkpoints.judged import WeightsOnlyAnswer
from ddp_probe.checkpoints.pickle_machine import Machine
from ddp_probe.wording.text import say

_OF_MODULE: Tuple[Tuple[str, str], ...] = (
    ("_codecs", "encode"),
    ("builtins", "bytearray complex set"),
    ("collections", "Counter OrderedDict"),
    ("torch", "Size Tensor device"),
    ("torch", "bfloat16 bool complex128 complex32 complex64 float16 float32 float64"),
    ("torch", "float4_e2m1fn_x2 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu"),
    ("torch", "int1 int2 int3 int4 int5 int6 int7 int8 int16 int32 int64"),
    ("torch", "uint1 uint2 uint3 uint4 uint5 uint6 uint7 uint8 uint16 uint32 uint64"),
    ("torch", "bits16 bits1x8 bits2x4 bits4x2 bits8 qint32 qint8 quint2x4 quint4x2 quint8"),
    ("torch", "per_channel_affine per_channel_affine_float_qparams per_channel_symmetric per_tensor_affine per_tensor_symmetric"),
    ("torch", "BFloat16Storage BoolStorage ByteStorage CharStorage ComplexDoubleStorage ComplexFloatStorage DoubleStorage FloatStorage"),
    ("torch", "HalfStorage IntStorage LongStorage QInt32Storage QInt8Storage QUInt2x4Storage QUInt4x2Storage QUInt8Storage ShortStorage"),
    ("torch", "BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor ShortTensor"),
    ("torch._tensor", "_rebuild_from_type_v2"),
    ("torch._utils", "_rebuild_device_tensor_from_cpu_tensor _rebuild_device_tensor_from_numpy _rebuild_meta_tensor_no_storage"),
    ("torch._utils", "_rebuild_nested_tensor _rebuild_parameter _rebuild_parameter_with_state _rebuild_qtensor _rebuild_sparse_tensor"),
    ("torch._utils", "_rebuild_tensor _rebuild_tensor_v2 _rebuild_tensor_v3 _rebuild_wrapper_subclass"),
    ("torch.cuda", "BFloat16Storage BoolStorage ByteStorage CharStorage ComplexDoubleStorage ComplexFloatStorage DoubleStorage FloatStorage"),
    ("torch.cuda", "HalfStorage IntStorage LongStorage ShortStorage BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor"),
    ("torch.cuda", "HalfTensor IntTensor LongTensor ShortTensor"),
    ("torch.cuda.sparse", "BFloat16Tensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor ShortTensor"),
    ("torch.sparse", "BFloat16Tensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor ShortTensor"),
    ("torch.nn.parameter", "Parameter"),
    ("torch.serialization", "_get_layout"),
    ("torch.storage", "TypedStorage UntypedStorage"),
)
_REGISTERED: Tuple[Tuple[str, str], ...] = (  # torch registers these with add_safe_globals when it is imported.
    ("torch.nested._internal.nested_tensor", "NestedTensor _rebuild_njt"),
    ("torch.distributed._mesh_layout", "_FlatLayout _MeshLayout"),
)
_OPCODES = frozenset(
    "APPEND APPENDS BINFLOAT BINGET BININT BININT1 BININT2 BINPERSID BINPUT BINUNICODE BUILD EMPTY_DICT EMPTY_LIST EMPTY_SET EMPTY_TUPLE GLOBAL"
    " LONG1 LONG_BINGET LONG_BINPUT MARK NEWFALSE NEWOBJ NEWTRUE NONE PROTO REDUCE SETITEM SETITEMS SHORT_BINSTRING STOP TUPLE TUPLE1 TUPLE2"
    " TUPLE3".split()
)


def _listed(table: Tuple[Tuple[str, str], ...]) -> FrozenSet[str]:
    return frozenset("%s.%s" % (module, name) for module, names in table for name in names.split())


DEFAULT = _listed(_OF_MODULE)
REGISTERED = _listed(_REGISTERED)
ALLOWED = DEFAULT | REGISTERED


def opcodes() -> FrozenSet[str]:
    """Return the opcodes that its unpickler knows."""
    return _OPCODES


def weights_only_answer(machine: Machine) -> WeightsOnlyAnswer:
    """Return whether it accepts the pickles that a machine has followed."""
    refused: List[str] = [path for path in machine.globals if path not in ALLOWED]
    unknown = sorted(machine.opcodes - _OPCODES)
    because = ""
    if unknown:
        because = say(
            "pickle protocol {protocol}: it does not know the opcode {opcode}",
            protocol=machine.protocol,
            opcode=unknown[0],
        )
    elif machine.misused:
        because = machine.misused
    elif refused:
        because = say("{count} of its classes and functions {count:is|are} not on the list", count=len(refused))
    return WeightsOnlyAnswer(not because, refused, because)
