"""The container: built of Debian's packages and the lock, and tests run in it."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

ROOT = Path(__file__).resolve().parents[2]


def test_tests_pass_in_the_container(reliability):
    lacking = [name for name in ("mmdebstrap", "buildah") if shutil.which(name) is None]
    if lacking or os.getuid():
        pytest.skip(f"it takes root, mmdebstrap and buildah; here lack {lacking or 'root'}")
    done = subprocess.run(
        [ROOT / ".ci" / "container"], capture_output=True, text=True, timeout=1800
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (passed,) = re.findall(r"^(\d+) passed", done.stdout, re.M)
    rule = "a base of Debian's packages, the image built on it without pulling one"
    reliability("container", "tests in the container of envs/Dockerfile", int(passed), 0, rule)
