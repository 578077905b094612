"""Texts with a planted credential, and the forms that vendors give to theirs: prefix, kind of letters, length.

SEEN was at hand when the masks were written. UNSEEN was made from the other half of the vendors only when they stood, to see what comes through.
"""

import random
import string
from typing import Iterator, List, Tuple

SECRET = "hunter2planted"

_LETTERS = {
    "any": string.ascii_letters + string.digits,
    "word": string.ascii_letters + string.digits + "_-",
    "hex": "0123456789abcdef",
    "low": string.ascii_lowercase + string.digits,
    "up": string.ascii_uppercase + string.digits,
}
_SEEN = """
    A3-ABCDEF- up 22 | AKIA up 16 | ASIA up 16 | ABSK any 110 | AKCp any 69 | LTAI low 20 | p8e- low 32 | sk-ant-api03- word 93 |
    sk- any 48 | sk-proj- word 60 | xoxb- word 40 | dapi hex 32 | dop_v1_ hex 64 | doo_v1_ hex 64 | dp.pt. low 43 | duffel_test_ word 43 |
    dt0c01. up 24 | EZAK low 54 | EAAC low 100 | FLWSECK_TEST- hex 12 | fio-u- word 64 | ghp_ any 36 | gho_ any 36 | ghs_ any 36 |
    github_pat_ any 82 | glpat- word 20 | gldt- word 20 | glrt- word 20 | glptt- hex 40 | GR1348941 word 20 | glc_ any 40 | glsa_ any 32 |
    HRKU-AA word 58 | ico- any 32 | lin_api_ any 40 | nvapi- word 64 | ya29. word 60 | sk_live_ any 24 | rk_test_ any 24 | hf_ any 34
"""
_UNSEEN = """
    maxmind_ any 29 | NRAK- up 27 | NRJS- hex 19 | npm_ low 36 | API- up 26 | sk-proj- any 74 | PMAK- hex 24 | pscale_tkn_ word 43 |
    pscale_pw_ word 43 | phc_ any 43 | pnu_ low 36 | pul- hex 40 | pypi-AgEIcHlwaS5vcmc word 60 | rdme_ low 70 | rubygems_ hex 48 |
    tk-us- any 48 | xkeysib- hex 64 | sntrys_ word 60 | sntryu_ hex 64 | sgp_ hex 40 | shpat_ hex 32 | shpss_ hex 32 | shippo_live_ hex 40 |
    SG. word 66 | sq0atp- word 22 | sq0csp- word 43 | sm_aat_ any 16 | sm_pat_ any 16 | xapp-1- up 40 | xoxp- word 50 | hvs. word 90 |
    hvb. word 120 | whsec_ any 32 | tfp_ any 59 | AIza word 35 | ATATT3 word 180 | figd_ word 40 | r8_ any 37 | gsk_ any 52 |
    AGE-SECRET-KEY-1 up 58
"""
_OF_LATE = "tskey-auth-k any 40 | tskey-client-k any 40 | tskey-api- any 40"
_AROUND = ("request failed (401) for %s on node1", "retrying with '%s'", "%s")


def _forms(table: str) -> Iterator[Tuple[str, str]]:
    for form in table.split("|"):
        prefix, letters, length = form.split()
        rng = random.Random(form.strip())
        yield prefix, "".join(rng.choice(_LETTERS[letters]) for _ in range(int(length)))


def planted(table: str) -> List[Tuple[str, str]]:
    """Return texts and what must not come through of each: the middle of the credential."""
    return [(around % (prefix + value), value[len(value) // 3 :][:8]) for prefix, value in _forms(table) for around in _AROUND]


SEEN, UNSEEN, OF_LATE = planted(_SEEN), planted(_UNSEEN), planted(_OF_LATE)

_UUID = "7f9c2ba4-e88f-4d2a-9c3b-616045507605"
# Credentials whose form or place alone tells: each with what must not come through.
BY_PLACE = [
    (text % core, core)
    for core, texts in (
        (
            _UUID,
            (
                "post to https://open.feishu.cn/open-apis/bot/v2/hook/%s failed",
                "https://open.larksuite.com/open-apis/bot/v2/hook/%s",
                "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=%s",
                "https://outlook.office.com/webhook/%s@x/IncomingWebhook/a/b",
                "https://n8n.example.org/webhook/%s",
                "modelscope login with ms-%s",
                "ms-%s",
            ),
        ),
        (
            "5f3kq8rjz7bg3kyn1o9d6w4x2e",
            (
                "https://chat.example.org/hooks/%s",
                "https://rocket.example.org/hooks/64f1c2e9a7/%s",
                "https://oapi.dingtalk.com/robot/send?access_token=%s",
                "https://discord.com/api/v10/webhooks/123456789/%s",
                "https://discordapp.com/api/webhooks/1/%s",
                "https://hooks.zapier.com/hooks/catch/123/%s/",
                "https://hook.eu1.make.com/%s",
                "https://sctapi.ftqq.com/%s.send",
                "https://api.day.app/%s/title",
                "https://maker.ifttt.com/trigger/x/with/key/%s",
            ),
        ),
        (
            "Ab3dEf5hIj7kLm9n",
            (
                "1f3870be274f6c49b3e31a0c6728957f.%s",
                "key 1f3870be274f6c49b3e31a0c6728957f.%s rejected",
                "api_key=1f3870be274f6c49b3e31a0c6728957f.%s",
            ),
        ),
        (
            SECRET,
            (
                "sshpass -p %s ssh node1",
                "bash -c 'sshpass -p%s ssh node1'",
                "curl -sS -u bob:%s https://h/x",
                "curl -o f https://h --user 'bob:%s'",
                "wandb login %s1234567890",
                "wandb login --relogin %s",
                "echo %s | kinit bob",
                "echo '%s' | sudo -S mount /data",
                "printf %s | docker login -u bob --password-stdin",
                "kinit bob <<< %s",
                "密码：%s",
                "访问密钥：%s，请检查",
                "令牌：“%s”无效",
                "密码: %s",
                "数据库密码为%s",
                "password：%s",
                "access_token\uff1d%s",
            ),
        ),
    )
    for text in texts
]

TEXTS = [
    "postgresql://bob:pa/%s@db",
    "https://hooks.slack.com/services/T00/B00/%s",
    "MASTER_ADDR=bob:%s@h",
    "Incorrect API key provided: %s",
    "Password '%s' rejected",
    "PGPASSWORD=%s",
    "Server=h;Uid=bob;Pwd=%s;",
    "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20250101/us-east-1/s3, SignedHeaders=host, Signature=%sabcdef0123456789",
    "os.environ['MY_API_KEY']='%s'",
    "os.environ[\"KEY\"] = '%s'",
    "{'token': ['%s']}",
    '{"passwords": ["a%s", "b"]}',
    "invalid token '%s'",
    "wrong password: %s",
    "password is %s",
    "401 for token %s",
    "x-api-key: %s",
    "login failed for user bob with password %s",
    "export AWS_SECRET_ACCESS_KEY=%s",
    "redis://:%s@h:6379/0",
    "amqp://u:%s@h",
    "Cookie: session=%s",
    "Set-Cookie: sid=%s; Path=/",
    "tokens=%s",
    "config.yaml: db_password: %s",
]
COMMANDS = [
    "--authtoken=%s",
    "--accesskey %s",
    "--secretkey=%s",
    "--dbpass=%s",
    "--user bob:%s",
    "--proxy-user=bob:%s",
    "-u bob:%s",
    "-p %s",
    "-p%s",
    "--tokens %s b%s",
    "--set db.password %s",
    "wandb login %s",
    "wandb login --relogin %s",
    "--db.password %s",
    "--cfg-options db.password=%s",
    "--pw %s",
    "--env WANDB_API_KEY=%s",
    "mysql --password=%s",
    "huggingface-cli login --token %s",
    "sshpass -p %s",
    "sshpass -p%s",
    "sshpass -e -p %s",
]
HARMLESS = [
    "torchrun --nproc_per_node=8 --rdzv_id=job7 --rdzv_endpoint=node1:29500 train.py configs/faster-rcnn_r50_fpn_1x_coco.py",
    "train.py --cfg-options model.backbone.init_cfg.checkpoint=/data/resnet50_8xb32_in1k_20210831-ea4938fc.pth --resume",
    "train.py --max_tokens 4096 --num-keys=8 --tokenizer llama-2-7b-hf --token-file /run/secrets/token -p 29500 -m pytest",
    "train.py --private-key ~/.ssh/id_rsa --commit 9c3a61f1f36a1f1e6e9c3a61f1f36a1f1e6e9c3a --run-id 7f9c2ba4-e88f-827d-6160-45507605",
    "python -m torch.distributed.run --master_addr=127.0.0.1 --master_port=29500 train.py -p configs/a.py --user bob",
    "train.py --hook https://mmengine.readthedocs.io/en/latest/api/hooks.html /a/hooks/checkpoint_hook_20260101.py ms-marco-MiniLM-L-6-v2",
    "train.py /data/1f3870be274f6c49b3e31a0c6728957f.safetensors --login node01-gpu-cluster-7 -p 2222",
]
HARMLESS_TEXTS = [
    "https://github.com/open-mmlab/mmengine/blob/main/mmengine/hooks/checkpoint_hook_2.py",
    "https://git.example.org/a/hooks/main/pre-receive-long-name.sh",
    "/data/webhook/server/20260101/x.py",
    "login node01-gpu-cluster-7 refused",
    "cross-encoder/ms-marco-TinyBERT-L-2-v2",
    "checksum 1f3870be274f6c49b3e31a0c6728957f. Done.",
    "docker run -u 1000:1000 image",
    "echo step 100 | tee train.log",
    "ssh -p 2222 node1",
    "密码错误",
    "令牌：512",
    "令牌数：4096，学习率：0.0001",
    "密钥：/home/u/.ssh/id_rsa",
    "损失为0.123456，文件：/data/模型/a.pth",
]
