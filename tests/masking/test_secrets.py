"""What is masked, and what is not."""

import math
import time
from pathlib import Path

import pytest
from secret_sets import BY_PLACE, COMMANDS, HARMLESS, HARMLESS_TEXTS, OF_LATE, SECRET, SEEN, TEXTS, UNSEEN

from ddp_probe.shared.masks import mask, mask_argv, mask_value, masked, secret_name

RECORDED = Path(__file__).resolve().parent.parent / "recorded"

PLANTED = [
    "https://user:%s@host/x.pth",
    "https://%s@host/x.pth",
    "https://host/x.pth?token=%s",
    "https://host/x.pth?%s",
    "https://host/x.pth#access=%s",
    "/data/x.pth?sig=%s&expires=1",
    "s3://bucket/x.pth?X-Amz-Signature=%s",
    "--password %s --lr 1",
    "--api-key=%s",
    "--hf_token %s",
    "token=%s",
    "lr=1,wandb.api_key=%s,x=2",
    "password: '%s and more'",
    "{'secret': '%s', 'lr': 1}",
    '{"client_secret": "%s"}',
    "Authorization: Bearer %s",
    "authorization=Basic %s",
    "Proxy-Authorization: %s",
    "DB_PASSWORD=a,%s;b",
    "accessToken=%s",
    "hf_ABC%s1",
    "ghp_%s",
    "sk-proj-1%s",
    "xoxb-%s",
    "glpat-%s",
    "eyJhbGciOiJIUzI1.%s.c2ln",
    "-----BEGIN RSA PRIVATE KEY-----\n%s\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\n%s",
]


@pytest.mark.parametrize("text", PLANTED)
def test_planted_secret_is_masked(text):
    """A credential in one of its usual forms is masked."""
    shown = mask(text % SECRET)
    assert SECRET not in shown
    assert "***" in shown


@pytest.mark.parametrize("text", TEXTS)
def test_planted_secret_in_a_message_is_masked(text):
    """A credential in an error message, a connection string or a line of configuration is masked."""
    assert SECRET not in mask(text % SECRET)


@pytest.mark.parametrize("command", COMMANDS)
def test_planted_secret_in_a_command_is_masked(command):
    """A credential on a command line is masked, and the options around it are not."""
    shown = mask_argv(["train.py", *command.replace("%s", SECRET).split(), "--lr", "0.1"])
    assert SECRET not in " ".join(shown)
    assert shown[0] == "train.py"
    assert shown[-2:] == ["--lr", "0.1"]


@pytest.mark.parametrize(("text", "core"), BY_PLACE)
@pytest.mark.parametrize("around", ["%s", "rank 0: %s", "%s; rank 0 lost the connection"])
def test_a_secret_known_by_its_place_is_masked(text, core, around):
    """A webhook, a key of two parts, a password in a command line or after a word in Chinese is masked in a text, as one argument and only once."""
    shown = mask(around % text)
    assert core not in shown
    assert mask(shown) == shown
    assert core not in " ".join(mask_argv(["bash", "-c", around % text]))


def test_a_password_of_digits_is_masked_where_nothing_else_can_stand():
    """A number after -p is a port, but not that of sshpass."""
    assert mask_argv(["sshpass", "-p", "123456", "ssh", "-p", "2222", "h"]) == ["sshpass", "-p", "***", "ssh", "-p", "2222", "h"]
    assert mask_argv(["/usr/bin/sshpass", "-p123456", "ssh"]) == ["/usr/bin/sshpass", "-p***", "ssh"]
    assert mask_argv(["curl", "-u", "u:pw"]) == ["curl", "-u", "u:***"]


@pytest.mark.parametrize("planted", [SEEN, UNSEEN, OF_LATE], ids=["seen", "unseen", "of late"])
def test_vendors_forms_are_masked(planted):
    """A key is known by the form that its vendor gives it, whatever stands around it, in a text and as an argument."""
    assert len(planted) in (120, 9)
    assert [text for text, core in planted if core in mask(text)] == []
    assert [text for text, core in planted if core in " ".join(mask_argv(["login", text]))] == []


@pytest.mark.parametrize("text", HARMLESS_TEXTS)
def test_harmless_text_that_is_like_a_secret_stands(text):
    """A page about hooks, the name of a model, a port, a count of tokens: each has a part of a secret's form."""
    assert mask(text) == text


@pytest.mark.parametrize("command", HARMLESS)
def test_harmless_command_stands_as_it_is(command):
    """Names, paths, numbers, ports, commits and identifiers of runs are what a diagnosis is made from."""
    assert mask_argv(command.split()) == command.split()


def test_nothing_is_masked_without_need():
    """Not one line that the collection's jobs print holds a secret, and not one is changed."""
    lines = {line for path in RECORDED.glob("*/*/output.txt") for line in path.read_text(encoding="utf-8").splitlines()}
    assert len(lines) > 2000
    assert [line for line in lines if mask(line) != line] == []


def test_amazon_key_is_masked():
    """A key id of a cloud provider is masked."""
    assert "AKIA" not in mask("id AKIAIOSFODNN7EXAMPLE found")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nccl",
        "KeyError: 'conv1.weight'",
        'Missing key(s) in state_dict: "model.a.weight"',
        "Unexpected key: 'x'",
        "num_tokens=512 tokenizer=bert max_keys=3",
        "tcp://127.0.0.1:29500",
        "/data/checkpoints/rank?.jsonl",
        "expected device gcu:0 but got gcu:1",
        "--lr 0.1 --work-dir runs/a-b-c",
        "author: Bob",
        "/etc/passwd: Busy",
        "eos_token=im_end",
        "invalid syntax (token 'abc123xyz')",
        "hf_transformers and sk-learn-contrib",
        "lr=3",
        "device_ids and output_device arguments only work with single-device modules, but got device_ids [0], output_device None.",
    ],
)
def test_harmless_text_stands_as_it_is(text):
    """What a diagnosis is made from is left alone."""
    assert mask(text) == text


def test_what_surrounds_a_secret_stays():
    """Host, path and the next option are still there."""
    assert mask("https://u:p@host/a/b.pth?x=1 --password p --lr 3") == "https://***@host/a/b.pth?*** --password *** --lr 3"


@pytest.mark.parametrize("name", ["WANDB_API_KEY", "HF_TOKEN", "MYSQL_PWD", "--password", "aws_secret_access_key", "authToken", "DB_PASS", "--auth"])
def test_secret_names(name):
    """A name with one of the words in it is a secret's."""
    assert secret_name(name)


@pytest.mark.parametrize("name", ["NCCL_DEBUG", "PWD", "OLDPWD", "TOKENIZERS_PARALLELISM", "keypoints", "MASTER_ADDR", "compass", "monkey", ""])
def test_names_that_are_no_secrets(name):
    """A word inside another word makes no secret."""
    assert not secret_name(name)


@pytest.mark.parametrize("path", ["/home/u/my clone/p", "~/a b ü/ddp_probe", "./my runs/run 1/model.pth", "/srv/模型 一/p"])
def test_a_path_with_a_space_is_no_secret(path):
    """A folder may have a space or a letter of any script in its name; under the name of a password it is masked all the same."""
    assert mask_value("SSH_AUTH_SOCK", path) == path
    assert mask_value("DB_PASSWORD", path) == "***"
    assert mask_value("API_TOKEN", "Tr0ub4dor and 3 /x/y") == "***"


def test_argv_pairs():
    """The value after an option of a secret's name is masked, and the one after that is not."""
    shown = mask_argv(["train.py", "--api-key", SECRET, "--token=" + SECRET, "--auth", "--lr", "1", "-H", "Authorization: Bearer " + SECRET])
    assert shown == ["train.py", "--api-key", "***", "--token=***", "--auth", "--lr", "1", "-H", "Authorization: ***"]


def test_argv_is_bounded():
    """At most 200 items of 1 000 characters are kept."""
    shown = mask_argv(["x" * 5000] * 300)
    assert len(shown) == 200
    assert {len(item) for item in shown} == {1000}


def test_argv_holds_anything():
    """An item that is not a string is described by its type."""
    assert mask_argv([1, None]) == ["<int>", "<NoneType>"]


def test_secret_at_the_cut_is_masked():
    """A secret that begins before the limit and ends after it does not come through in part."""
    for lead in range(150, 201):
        shown = masked("a " * (lead // 2) + "token=" + SECRET + " b" * 5000, 200)
        assert len(shown) <= 200
        assert SECRET[:8] not in shown


@pytest.mark.parametrize(
    "seed",
    [
        "a-",
        "a=",
        "?",
        "a:",
        "sk-",
        "eyJ",
        "-----BEGIN ",
        "://a",
        "a@",
        "a:b@",
        "A1",
        "token ",
        "x='",
        "['a'",
        "0f",
        "://a/hook/",
        "://hook/a1",
        "curl -x ",
        "echo a ",
        "sshpass -e ",
        "密码",
        "a1.",
        "wandb login -a ",
        "Signature=",
        "pat.",
        "a1b",
        "mysql -p",
        "mysql/",
        "'mysql', ",
        "'password', ",
        "net user ",
        "name: a value: ",
        "name\\n",
        "<a>",
        "<a ",
        "a:11:b:c:",
        "://a/token/a1",
        "/api/token/",
        "auth=('a'",
        "\x1b[1m",
        "password for ",
        "cookie: a=",
        "secret \t",
        "1234567890123456-",
        "密码 a",
        "://conda/t/",
        "keyA1a",
        "--key A_",
        "'\"",
        "mysql -p\n",
    ],
)
def test_time_grows_with_length_alone(seed):
    """Text made to slow a regular expression down takes at most about twice as long if it is twice as long."""

    def seconds(text):
        began = time.process_time()
        mask(text)
        return time.process_time() - began

    once, twice = math.inf, math.inf
    for _ in range(12):  # The least of several: what else runs on the machine only adds to a time.
        once, twice = (min(least, seconds((seed * size)[:size])) for least, size in ((once, 8000), (twice, 16000)))
        if twice < 3 * once + 0.01:
            return
    pytest.fail("%.3f s for 8000 characters, %.3f s for 16000" % (once, twice))


@pytest.mark.parametrize(
    ("form", "shown"),
    [("/data/ghp_%s/x.py", "/data/***/x.py"), ("C:/a/hf_%s", "C:/a/***"), ("runs/AKIA%s/y", "runs/***/y"), ("/w/sk-QRST0%s", "/w/***")],
)
def test_token_in_a_path_is_masked(form, shown):
    """A folder's name that is a vendor's key is masked, and the rest of the path stands."""
    assert mask(form % "ABCDEFGHIJ1234567890abcdefghij") == shown


@pytest.mark.parametrize(
    "path",
    ["/data/npm_config_cache_v1/x.py", "/a/pypi-mirror-2024/b", "/x/dapi-2017/keypoints/y.pth", "/home/pul-2/z", "/x/sk-learn-contrib-0123456789/y"],
)
def test_folder_with_a_prefix_stands(path):
    """A folder's name that only begins like a key is not masked."""
    assert mask(path) == path


@pytest.mark.parametrize("text", [*PLANTED, *TEXTS])
@pytest.mark.parametrize("after", ["", "; rank 0 lost the connection.", "), and more"])
def test_masking_twice_is_masking_once(text, after):
    """What is masked already is not masked again, so that a bundle says what the run says."""
    once = mask(text % SECRET + after)
    assert mask(once) == once


def test_something_behind_a_mask_is_still_masked():
    """A query that only begins with the mask is not taken for masked."""
    assert SECRET not in mask("https://host/x?***%s=1" % SECRET)
