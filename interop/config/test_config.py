"""Both programs check each configuration with `-t`. The results are compared: whether it is accepted, and the
digest of its values, which shows that both have read the same values."""

import os
import re
import subprocess
import tempfile

import pytest

from config import helm
from config.cases import CASES, FILES
from config.differences import DIFFERENCES
from harness.checks import check, equal
from harness.server import reference_server, server_under_test

SECONDS_MAX = 20
TEXTS = [*CASES, *(text for text in DIFFERENCES if text not in CASES)]
ENVIRONMENT = {
    "FANLINE_TEST_PORT": "4333",
    "FANLINE_TEST_SIZE": "2k",
    "FANLINE_TEST_NAME": "'a b'",
    **helm.environment("nats-0"),
}
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
UNKNOWN = re.compile(r'nknown field "([^"]*)"')


class Answer:
    def __init__(self, binary: str, directory: str):
        environment = {**os.environ, **ENVIRONMENT}
        done = subprocess.run(
            [binary, "-t", "-c", "case.conf"],
            cwd=directory,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS_MAX,
        )
        self.text = (done.stdout + done.stderr).strip()
        self.code = done.returncode
        digests = DIGEST.findall(self.text)
        self.digest = digests[-1] if digests else ""
        self.unknown = set(UNKNOWN.findall(self.text))

    def verdict(self) -> str:
        return "taken" if self.code == 0 else "refused"


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_config(text: str):
    ours, theirs = server_under_test(), reference_server()
    with tempfile.TemporaryDirectory() as directory:
        for name, content in {**FILES, "case.conf": text}.items():
            path = os.path.join(directory, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", newline="") as file:
                file.write(content)
        link = os.path.join(directory, "nats-server")
        os.symlink(ours, link)
        fanline = Answer(link, directory)
        reference = Answer(theirs, directory)
    told = f"\nFanline: {fanline.text}\nnats-server: {reference.text}"
    check(fanline.code in (0, 1), f"exit code {fanline.code}{told}")
    if text in DIFFERENCES:
        check(ours == theirs or fanline.verdict() != reference.verdict(), f"they do not differ any more{told}")
        return
    check(fanline.verdict() == reference.verdict(), f"they differ{told}")
    equal(fanline.digest, reference.digest, f"digest{told}")
    # If there are several unknown fields, the reference reports a random one.
    check(reference.unknown <= fanline.unknown, f"the unknown field{told}")
    if fanline.code == 1 and fanline.unknown:
        check(re.search(r"\w+\.conf:\d+:\d+: ", fanline.text), f"no place{told}")
