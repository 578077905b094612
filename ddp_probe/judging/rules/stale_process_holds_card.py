"""A process from an earlier run, or from another user, still holds the card."""

from ddp_probe.judging.rule import Printed, Rule
from ddp_probe.judging.vendor_words import CARDS

_BUSY = r"(?:all )?CUDA-capable device(?:s|\(s\))? (?:is/)?are busy or unavailable|devicesUnavailable|cudaErrorDevicesUnavailable"
_SMALL = r"(?:[\d.]+ (?:MiB|KiB|bytes)|0 bytes)"

RULE = Rule(
    id="DDP411",
    slug="stale-process-holds-card",
    cause="stale_process_holds_device",
    title="Another process holds the card.",
    symptom=(
        "'all CUDA-capable devices are busy or unavailable', HCCL's 'the last training process is running' or 'have been bound already'; "
        "or memory that is full before this process uses any."
    ),
    evidence=(
        "The driver or the communication library says that the card or its port is in use; or the card is full while this process holds almost "
        "nothing."
    ),
    remedy=(
        "End what is left of the earlier run on that host (nvidia-smi, npu-smi info, efsmi or fuser -v /dev/<card> name its pid), "
        "wait a few seconds, and start again. If another job holds the card, choose another card."
    ),
    restart="elsewhere",  # The process is on this host, and stays until somebody ends it.
    needs=("process.end",),
    printed=(
        Printed(
            _BUSY,
            beside=r"[Ee]xclusive|E\. Process",
            says="A card in exclusive mode takes one process: another one holds it, or a rank uses the card of its neighbour.",
            next="Look who is on the card (nvidia-smi). If it is a rank of this job, let each call torch.cuda.set_device(LOCAL_RANK) first.",
        ),
        Printed(_BUSY),
        Printed(
            r"CUDA error: out of memory",
            beside=r"_cuda_init|_cuda_setDevice|in _lazy_init\b|in set_device\b",
            says="The card has no memory left before this process uses any.",
        ),
        Printed(r"[Ll]ast training process is running|Failed to initialize the HCCP process|HCCP process [^\n]*already"),
        Printed(r"\[?Device already acquired|Couldn't open device: /dev/(?:accel|vfio)\w*/?\w* \(Device or resource busy\)"),
        Printed(
            r"TPU is already in use by process with pid (?P<pid>\d+)",
            says="Process {pid} holds the TPU: end it, or wait for it to end.",
            ranks=False,
        ),
        Printed(r"(?:TPU is|libtpu\.so (?:is )?)already in use by another process", ranks=False),
        Printed(
            r"\[Generic failure\] *Device acquire failed",
            says="Gaudi's runtime cannot acquire a card: another process holds it, or the driver or the container does not give it.",
            next="hl-smi lists the cards and who is on them; in a container look at --runtime=habana and HABANA_VISIBLE_DEVICES.",
        ),
        Printed(r"Failed to bind the IP port|IP address and port have been bound already|Communication_Error_Bind_IP_Port"),
        Printed(r"(?:%s|[Dd]evice)[^\n]{0,40}(?:is|has been) (?:busy|occupied|used by another process|in use by another)" % CARDS),
        Printed(
            r"[\d.]+ GiB total capacity; (?P<own>%s) already allocated; (?P<free>%s) free" % (_SMALL, _SMALL),
            says="The card has {free} left although this process holds {own}: another one holds the rest.",
        ),
        Printed(
            r"(?:[4-9]\d\.\d+ GiB total capacity; (?P<own>1?\d\.\d+ GiB)|[1-3]\d\.\d+ GiB total capacity; [0-4]\.\d+ GiB) already allocated; "
            r"(?P<free>[\d.]+ MiB) free; (?(own)1?\d|[0-4])\.\d+ GiB reserved",
            says="The card has {free} left, and this process has reserved a small part of it: another one holds the rest.",
        ),
        # In a container the pids are other ones: the message does not say which of them is this process.
        Printed(
            (
                r"of which (?P<free>%s) is free\. Process (?P<pid>\d+) has (?P<held>\d\d[\d.]* GiB) memory in use\..*?Of the allocated memory "
                r"(?P<own>[\d.]+ (?:MiB|KiB|bytes)) is allocated by PyTorch"
            )
            % _SMALL,
            says="Process {pid} holds {held} of the card, this one {own}.",
        ),
        Printed(
            r"of which [\d.]+ MiB is free\. Process (?P<pid>\d+) has (?P<held>(?:[6-9]\d|(?P<half>[3-5]\d))\.\d+ GiB) memory in use\. "
            r"Including non-PyTorch memory, this process has (?P<own>(?(half)1?[0-4]|[12]?\d)\.\d+ GiB) memory",
            says="Process {pid} holds {held} of the card, this one {own}.",
        ),
        Printed(
            (
                r"of which (?P<free>%s) is free\. Process (?P<pid>\d+) has (?P<held>[\d.]+ GiB) memory in use\. Including non-PyTorch memory, this"
                r" process has (?P<own>[\d.]+ MiB) memory"
            )
            % _SMALL,
            says="Process {pid} holds {held} of the card, this one {own}.",
        ),
    ),
)
