"""A card, or the link to it, is broken: the driver or torch says so."""

from ddp_probe.judging.rule import Printed, Rule
from ddp_probe.judging.xids import LINK, REBOOT, RESET, numbers

_XID = (
    r"(?:(?P<host>[\w.-]+) kernel: (?:\[[\d. ]+\] )?)?(?:NVRM: )?"
    r"Xid \(PCI:(?P<card>[\da-fA-F:.]{4,16})\): (?P<xid>%s)\b"
)
# NVIDIA's catalogue lets a job start again after these, or asks for nothing: they come before worse.
_OF_MEMORY = "63|92|94"

RULE = Rule(
    id="DDP237",
    slug="card-broken",
    cause="card_broken",
    title="A card, or the link to it, is broken.",
    symptom="'uncorrectable ECC error encountered', 'GPU has fallen off the bus', 'GPU is lost', an Xid of the driver; the other ranks time out.",
    evidence=(
        "The words of the driver or of the CUDA runtime. The Xids 13, 31, 43 and 45 prove nothing: a program that reads outside its memory "
        "causes them too."
    ),
    remedy=(
        "Drain the host, note the card (the PCI address in the message; nvidia-smi -q -d ECC,ROW_REMAPPER), reset it or reboot the host, and "
        "have it replaced if it happens again. Until then start without it: name the other cards in CUDA_VISIBLE_DEVICES, and start one rank "
        "fewer."
    ),
    restart="elsewhere",  # The card or its link stays broken until its host's owner acts.
    needs=("process.end",),
    printed=(
        Printed(
            r"uncorrectable (?P<what>ECC|NVLink) error (?:encountered|detected)|cudaErrorECCUncorrectable|CUDA_ERROR_ECC_UNCORRECTABLE",
            says="A card reports an {what} error that it cannot correct.",
        ),
        Printed(
            _XID % numbers(RESET),
            says="The driver reports Xid {xid} for the card at {card}: it is broken, or has to be reset.",
            ranks=False,
        ),
        Printed(
            _XID % numbers(REBOOT),
            says="The driver reports Xid {xid} for the card at {card}: its host has to be started again.",
            ranks=False,
        ),
        Printed(
            _XID % numbers(LINK),
            says="The driver reports Xid {xid} for the card at {card}: its link to other cards is broken.",
            ranks=False,
        ),
        Printed(
            _XID % _OF_MEMORY,
            says="The driver reports Xid {xid} for the card at {card}: its memory has errors.",
            ranks=False,
        ),
        Printed(
            r"GPU has fallen off the bus|(?m:^)[^\n]*NVRM:[^\n]*fallen off the bus",
            says="The driver has lost a card: it has fallen off the bus.",
            ranks=False,
        ),
        Printed(
            r"Unable to determine the device handle for (?i:gpu) ?(?:\d{1,3}: ?)?(?P<card>[\da-fA-F:.]{4,16}): "
            r"(?:GPU is lost|Unknown Error|Not Found)",
            says="The driver can no longer reach the card at {card}.",
            ranks=False,
        ),
        Printed(
            r"NCCL WARN nvml\w+\(?\)? failed: GPU is lost",
            says="The driver can no longer reach a card.",
            ranks=False,
        ),
        Printed(
            r"Remapping Failure Occurred\s{1,40}: Yes|row[- ]remapp\w* (?:failure|failed)",
            says="A card has no spare rows left for its broken memory.",
            ranks=False,
        ),
        Printed(
            r"(?i:hbm multi-?bit ecc error)|\b(?:ACL_ERROR_RT_HBM_MULTI_BIT_ECC_ERROR|507054)\b",
            says="A card reports memory errors that it cannot correct.",
        ),
    ),
)
