"""The registry and fetching, against a server on the loopback interface."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from concord.datasets import fetch
from concord.errors import ConcordError

ROOT = Path(__file__).resolve().parents[1]
MIRROR = Path(os.environ.get("CONCORD_DATA_MIRROR") or ROOT.parent / "shared" / "data")

BODY = bytes(range(256)) * 1200  # several reads long
SHA256 = hashlib.sha256(BODY).hexdigest()
HTML = b"\n<!DOCTYPE html>\n<html><body>We moved.</body></html>"


class Host:
    """A web server whose answer to each path is a function of the handler."""

    def __init__(self) -> None:
        self.answers: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {}
        self.requests: list[tuple[str, str | None]] = []  # path, Range header
        host = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                host.requests.append((self.path, self.headers["Range"]))
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    host.answers.get(self.path, status(404))(self)

            def log_message(self, *_) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def reply(handler, code: int, body: bytes = b"", sent: int | None = None, **headers: str) -> None:
    """Announce ``body`` whole, send the first ``sent`` bytes of it, and hang up."""
    handler.send_response(code)
    handler.send_header("Content-Length", str(len(body)))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body[:sent])
    handler.close_connection = True


def status(code: int, **headers: str):
    return lambda handler: reply(handler, code, **headers)


def whole(body: bytes = BODY, sent: int | None = None):
    return lambda handler: reply(handler, 200, body, sent)


def ranged(body: bytes = BODY, sent: int | None = None):
    """Serve as hosts with Range support do, cutting each answer after ``sent`` bytes."""

    def answer(handler) -> None:
        wanted = re.fullmatch(r"bytes=(\d+)-", handler.headers["Range"] or "")
        if not wanted:
            return reply(handler, 200, body, sent)
        start = int(wanted[1])
        if start >= len(body):
            return reply(handler, 416)
        extent = f"bytes {start}-{len(body) - 1}/{len(body)}"
        return reply(handler, 206, body[start:], sent, Content_Range=extent)

    return answer


def in_turn(*answers):
    """Give one answer after another; the last one stays."""
    left = list(answers)
    return lambda handler: (left.pop(0) if len(left) > 1 else left[0])(handler)


@pytest.fixture
def host(monkeypatch) -> Iterator[Host]:
    monkeypatch.delenv(fetch.MIRROR_VARIABLE, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = Host()
    yield server
    server.close()


@pytest.fixture
def register(tmp_path, host):
    """Write a registry with one file at the given paths of the host; return its path."""

    def write(*paths: str, body: bytes = BODY) -> Path:
        file = {
            "bytes": len(body),
            "sha256": hashlib.sha256(body).hexdigest(),
            "urls": [path if "://" in path else host.address + path for path in paths],
        }
        entry = {"description": "d", "license": "l", "citation": "c", "files": {"f.bin": file}}
        registry = tmp_path / "datasets.yaml"
        registry.write_text(yaml.safe_dump({"tiny": entry}))
        return registry

    return write


@pytest.fixture
def target(tmp_path) -> Path:
    return tmp_path / "resources" / "tiny" / "f.bin"


def fetch_it(registry: Path, target: Path, mirror=None, **options) -> Path:
    options = {"timeout": 0.5, "pause": 0.001, **options}
    return fetch.fetch("tiny/f.bin", target, mirror, registry, **options)


def failure(*args, **options) -> str:
    with pytest.raises(ConcordError) as caught:
        fetch_it(*args, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def fetched(target: Path) -> bool:
    """The file is right and nothing else lies beside it."""
    return target.read_bytes() == BODY and os.listdir(target.parent) == [target.name]


def nothing(target: Path) -> bool:
    return os.listdir(target.parent) == []


# Registry ----------------------------------------------------------------------------------------


def test_registry_fits_its_schema():
    import jsonschema

    schema = json.loads((ROOT / "workflow/schemas/datasets.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    document = yaml.safe_load(fetch.REGISTRY.read_text())
    jsonschema.validate(document, schema)
    document["a9a"]["files"]["a9a"]["sha1"] = "0"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema)


def test_registry_has_the_data_sets_of_the_papers():
    registry = fetch.load_registry()
    assert {name: len(entry.files) for name, entry in registry.items()} == {
        "a9a": 1,
        "magic": 1,
        "mnist": 4,
        "svhn": 1,
    }
    svhn = registry["svhn"].files["test_32x32.mat"]
    assert (svhn.bytes, svhn.sha256[:8]) == (64275384, "cdce80df")


def test_registry_fits_the_real_files(tmp_path):
    found = 0
    for name, entry in fetch.load_registry().items():
        for file in entry.files:
            if (MIRROR / file).is_file():
                made = fetch.fetch(f"{name}/{file}", tmp_path / name / file, MIRROR)
                assert made.read_bytes() == (MIRROR / file).read_bytes()
                found += 1
    if not found:
        pytest.skip(f"{MIRROR} has no data files; set CONCORD_DATA_MIRROR to a folder that has")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda file: file.pop("sha256"), "'sha256' is missing"),
        (lambda file: file.update(sha256="F" * 64), "not 64 lower-case"),
        (lambda file: file.update(md5="0"), "md5: unknown key"),
        (lambda file: file.update(bytes=0), "bytes: 0 is not"),
        (lambda file: file.update(bytes="many"), "not an integer"),
        (lambda file: file.update(urls=[]), "urls: is empty"),
        (lambda file: file.update(urls=["file:///etc/hosts"]), "not a web address"),
    ],
)
def test_registry_rejects(register, change, words):
    registry = register("/f")
    document = yaml.safe_load(registry.read_text())
    change(document["tiny"]["files"]["f.bin"])
    registry.write_text(yaml.safe_dump(document))
    with pytest.raises(ConcordError, match=re.escape(f"{registry}: tiny.files.f.bin")) as caught:
        fetch.load_registry(registry)
    assert words in str(caught.value)


@pytest.mark.parametrize("text", ["", "- a", "a: [", "../a: {}", "1: {}", "tiny: {files: {}}"])
def test_registry_rejects_other_documents(tmp_path, text):
    registry = tmp_path / "datasets.yaml"
    registry.write_text(text)
    with pytest.raises(ConcordError, match=re.escape(str(registry))):
        fetch.load_registry(registry)


def test_registry_missing(tmp_path):
    with pytest.raises(ConcordError, match="cannot be read"):
        fetch.load_registry(tmp_path / "datasets.yaml")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a9b/a9a", "no data set 'a9b' .* did you mean 'a9a'"),
        ("a9a", "did you mean 'a9a/a9a'"),
        ("mnist", "mnist/t10k-images-idx3-ubyte.gz, "),
        ("magic/magic04.dat", "did you mean 'magic/magic04.data'"),
    ],
)
def test_unknown_names(name, words):
    with pytest.raises(ConcordError, match=words):
        fetch.find(name)


# Hosts -------------------------------------------------------------------------------------------


def test_download(host, register, target):
    host.answers["/f"] = whole()
    assert fetch_it(register("/f"), target) == target
    assert fetched(target)
    assert host.requests == [("/f", None)]
    fetch_it(register("/f"), target)
    assert len(host.requests) == 1  # what is there and right is kept


def test_retry_after_503(host, register, target):
    host.answers["/f"] = in_turn(status(503), status(503), whole())
    fetch_it(register("/f"), target)
    assert fetched(target) and len(host.requests) == 3


def test_retries_end(host, register, target):
    host.answers["/f"] = status(503)
    message = failure(register("/f"), target)
    assert "answered 503 Service Unavailable (after 3 attempts)" in message
    assert len(host.requests) == 3 and nothing(target)


def test_redirect(host, register, target):
    host.answers["/old"] = status(302, Location="/f")
    host.answers["/f"] = whole()
    fetch_it(register("/old"), target)
    assert fetched(target)


def test_endless_redirect(host, register, target):
    host.answers["/f"] = status(302, Location="/f")
    assert "redirects" in failure(register("/f"), target, attempts=1)


def test_resume_after_a_cut(host, register, target):
    host.answers["/f"] = ranged(sent=100_000)
    fetch_it(register("/f"), target, attempts=2)
    assert fetched(target)
    starts = [int(wanted[6:-1]) for _, wanted in host.requests[1:]]
    # Every attempt goes on where the one before stopped, more often than attempts in vain allow.
    assert len(starts) >= 3 and starts == sorted(set(starts)) and starts[0] > 0


def test_cut_without_ranges_starts_again(host, register, target):
    host.answers["/f"] = in_turn(whole(sent=100_000), whole())
    fetch_it(register("/f"), target)
    assert fetched(target)
    assert host.requests[1][1] is not None


def test_cut_on_every_attempt_keeps_the_beginning_for_the_next_call(host, register, target):
    host.answers["/f"] = whole(sent=100_000)
    message = failure(register("/f"), target)
    assert "cut the connection after" in message and not target.exists()
    gained = target.with_name("f.bin.part").stat().st_size
    assert 0 < gained <= 100_000
    host.answers["/f"] = ranged()
    fetch_it(register("/f"), target)
    assert fetched(target) and host.requests[-1] == ("/f", f"bytes={gained}-")


def test_resume_at_the_next_host(host, register, target):
    host.answers["/f"] = in_turn(whole(sent=100_000), status(404))
    host.answers["/g"] = ranged()
    fetch_it(register("/f", "/g"), target)
    assert fetched(target) and host.requests[-1][1] is not None


@pytest.mark.parametrize("remnant", [b"x" * 1000, b"x" * len(BODY), b"x" * (len(BODY) + 5), BODY])
def test_remnant(host, register, target, remnant):
    """Whatever an earlier call left, the outcome is the right file."""
    target.parent.mkdir(parents=True)
    target.with_name("f.bin.part").write_bytes(remnant)
    host.answers["/f"] = ranged()
    fetch_it(register("/f"), target)
    assert fetched(target)
    assert len(host.requests) == (0 if remnant == BODY else 2 if len(remnant) == 1000 else 1)


def test_remnant_beyond_the_end_of_the_hosts_file(host, register, target):
    target.parent.mkdir(parents=True)
    target.with_name("f.bin.part").write_bytes(b"x" * 1000)

    def answer(handler):
        (status(416) if handler.headers["Range"] else whole())(handler)

    host.answers["/f"] = answer
    fetch_it(register("/f"), target)
    assert fetched(target)


def test_answer_to_another_range_is_not_appended(host, register, target):
    target.parent.mkdir(parents=True)
    target.with_name("f.bin.part").write_bytes(BODY[:1000])

    def wrong(handler):
        reply(handler, 206, BODY[500:], Content_Range=f"bytes 500-{len(BODY) - 1}/{len(BODY)}")

    host.answers["/f"] = in_turn(wrong, ranged())
    fetch_it(register("/f"), target)
    assert fetched(target) and host.requests[-1] == ("/f", None)


def test_slow_host(host, register, target):
    release = threading.Event()
    host.answers["/f"] = lambda handler: release.wait(5)
    began = time.monotonic()
    message = failure(register("/f"), target, timeout=0.05, attempts=2)
    assert time.monotonic() - began < 2
    release.set()
    assert "gave no answer within 0.05 s (after 2 attempts)" in message and nothing(target)


@pytest.mark.parametrize(
    "body",
    [BODY[:-1], BODY[:1000] + b"\0" + BODY[1001:], BODY + b"\0"],
    ids=["truncated", "flipped byte", "wrong size"],
)
def test_mismatch_names_what_differs_and_keeps_nothing(host, register, target, body):
    assert body != BODY
    host.answers["/f"] = whole(body)
    message = failure(register("/f"), target)
    if len(body) == len(BODY):
        assert f"SHA-256 {hashlib.sha256(body).hexdigest()} instead of {SHA256}" in message
    else:
        assert f"sent {len(body)} bytes instead of {len(BODY)};" in message
    assert "HTML" not in message
    assert nothing(target)
    assert len(host.requests) == 1  # a wrong file is not asked for twice


def test_far_too_long_file_is_not_read_to_its_end(host, register, target):
    host.answers["/f"] = whole(bytes(len(BODY) + (3 << 20)))
    assert "longer file than the registered" in failure(register("/f"), target)
    assert nothing(target)


def test_html_page(host, register, target):
    host.answers["/f"] = whole(HTML)
    message = failure(register("/f"), target)
    assert f"{len(HTML)} bytes instead of {len(BODY)} (it looks like an HTML page)" in message
    assert nothing(target)


def test_next_host_after_a_wrong_file(host, register, target, caplog):
    host.answers["/f"] = whole(HTML)
    host.answers["/g"] = whole()
    fetch_it(register("/f", "/g"), target)
    assert fetched(target)
    assert "looks like an HTML page" in caplog.text


def raw(*parts: bytes, pause: float = 0.0):
    """Send bytes as they are, and again the last of them for ever if there is a pause."""

    def answer(handler) -> None:
        handler.wfile.write(b"".join(parts))
        while pause:
            time.sleep(pause)
            handler.wfile.write(parts[-1])
        handler.close_connection = True

    return answer


OK, CHUNKED = b"HTTP/1.1 200 OK\r\n", b"Transfer-Encoding: chunked\r\n\r\n"
NONSENSE = {
    "redirect to no address": raw(b"HTTP/1.1 302 Found\r\nLocation: http://[::1/\r\n\r\n"),
    "redirect that is not UTF-8": raw(b"HTTP/1.1 302 Found\r\nLocation: /\xff\xfe\r\n\r\n"),
    "redirect to a file": raw(b"HTTP/1.1 302 Found\r\nLocation: file:///etc/hosts\r\n\r\n"),
    "redirect to port 99999": raw(b"HTTP/1.1 302 Found\r\nLocation: http://a:99999/\r\n\r\n"),
    "chunk of a negative length": raw(OK, CHUNKED, b"-5\r\nabcde\r\n0\r\n\r\n"),
    "chunk of a nonsensical length": raw(OK, CHUNKED, b"zz\r\nabcde\r\n0\r\n\r\n"),
    "negative length": raw(OK, b"Content-Length: -5\r\n\r\nabcde"),
    "two lengths": raw(OK, b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcde"),
    "no HTTP": raw(b"\0\xff" * 100),
    "status without a number": raw(b"HTTP/1.1 yes\r\n\r\n"),
    "a line without end": raw(OK + b"a" * 100_000),
    "too many headers": raw(OK + b"a: b\r\n" * 1000),
}


@pytest.mark.parametrize("what", NONSENSE)
def test_a_host_that_talks_nonsense_is_passed_over(host, register, target, what, caplog):
    host.answers["/f"] = NONSENSE[what]
    host.answers["/g"] = whole()
    fetch_it(register("/f", "/g"), target)
    assert fetched(target)
    assert f"{host.address}/f" in caplog.text


ENDLESS = {
    "continue": raw(b"HTTP/1.1 100 Continue\r\n\r\n", pause=1e-4),
    "headers": raw(OK + b"a: ", b"b", pause=0.02),
    "bytes": raw(OK + f"Content-Length: {len(BODY)}\r\n\r\n".encode(), b"x", pause=0.02),
    "chunks": raw(OK + CHUNKED, b"1\r\nx\r\n", pause=0.02),
    "extension of a chunk": raw(OK + CHUNKED + b"1;", b"x", pause=0.02),
    "a byte per connection": ranged(sent=1),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_a_host_that_never_ends_is_left(host, register, target, what, caplog):
    host.answers["/f"] = ENDLESS[what]
    host.answers["/g"] = whole()
    began = time.monotonic()
    fetch_it(register("/f", "/g"), target, limit=0.3)
    assert time.monotonic() - began < 3
    assert fetched(target)
    assert f"{host.address}/f took longer than" in caplog.text


def test_slow_files_have_time(register):
    """A minute, and what the file takes at 20 kB/s."""
    assert fetch._limit(fetch.DataFile(64_000_000, SHA256, ())) == 60 + 3200


def test_404_everywhere(host, register, target):
    message = failure(register("/f", "/g"), target)
    for path in ("/f", "/g"):
        assert f"{host.address}{path} answered 404" in message
    assert message.startswith(f"{target} needs the data file tiny/f.bin")
    assert f"put a copy named f.bin ({len(BODY)} bytes, SHA-256 {SHA256}) into a folder" in message
    assert "CONCORD_DATA_MIRROR" in message and "data_mirror in config/config.yaml" in message
    assert nothing(target) and len(host.requests) == 2


def test_no_network(register, target):
    with socket.socket() as free:  # a port where nobody listens
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/f"
    message = failure(register(url), target)
    assert f"{url} is not reachable" in message and "refused" in message
    assert "into a folder and name that folder" in message and nothing(target)


# Mirror ------------------------------------------------------------------------------------------


@pytest.fixture
def mirror(tmp_path) -> Path:
    folder = tmp_path / "mirror"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("by", ["argument", "variable"])
def test_mirror_before_hosts(host, register, target, mirror, monkeypatch, by):
    (mirror / "f.bin").write_bytes(BODY)
    (mirror / "f.bin").chmod(0o400)
    if by == "variable":
        monkeypatch.setenv("CONCORD_DATA_MIRROR", str(mirror))
    fetch_it(register("/f"), target, mirror if by == "argument" else None)
    assert fetched(target) and host.requests == []
    assert target.stat().st_mode & 0o200  # the copy does not inherit the mirror's permissions


def test_mirror_argument_wins(host, register, target, mirror, monkeypatch):
    (mirror / "f.bin").write_bytes(BODY)
    monkeypatch.setenv("CONCORD_DATA_MIRROR", "/nowhere")
    fetch_it(register("/f"), target, mirror)
    assert fetched(target) and host.requests == []


def test_mirror_without_the_file(host, register, target, mirror):
    host.answers["/f"] = whole()
    fetch_it(register("/f"), target, mirror)
    assert fetched(target)
    target.unlink()
    host.answers["/f"] = status(404)
    message = failure(register("/f"), target, mirror)
    assert f"the mirror has no file {mirror / 'f.bin'}" in message
    assert message.endswith(f"into {mirror}")


@pytest.mark.parametrize("by", ["data_mirror", "CONCORD_DATA_MIRROR"])
def test_missing_mirror_folder(host, register, target, tmp_path, monkeypatch, by):
    folder = str(tmp_path / "typo")
    if by == "CONCORD_DATA_MIRROR":
        monkeypatch.setenv(by, folder)
    message = failure(register("/f"), target, folder if by == "data_mirror" else None)
    assert message.startswith(f"{by}: {folder!r} is not a folder") and host.requests == []


def test_bad_mirror_copy_then_good_host(host, register, target, mirror, caplog):
    (mirror / "f.bin").write_bytes(b"x" * len(BODY))
    host.answers["/f"] = whole()
    fetch_it(register("/f"), target, mirror)
    assert fetched(target)
    wrong = hashlib.sha256(b"x" * len(BODY)).hexdigest()
    assert f"SHA-256 {wrong} instead of {SHA256}" in caplog.text


def test_bad_mirror_copy_and_no_host(register, target, mirror):
    (mirror / "f.bin").write_bytes(HTML)
    message = failure(register("/f"), target, mirror)
    assert f"copy {mirror / 'f.bin'} is not used" in message and "HTML" in message
    assert "answered 404" in message
    assert nothing(target)


def test_files_of_another_size_are_not_read(host, register, target, mirror):
    """Three files of 30 GiB, which take no place: in the mirror, in place, begun."""
    target.parent.mkdir(parents=True)
    for path in (mirror / "f.bin", target, target.with_name("f.bin.part")):
        path.touch()
        os.truncate(path, 30 << 30)
    host.answers["/f"] = whole()
    began = time.monotonic()
    fetch_it(register("/f"), target, mirror)
    assert time.monotonic() - began < 3
    assert fetched(target)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
@pytest.mark.parametrize("place", ["mirror", "destination", "part"])
def test_only_files_are_read(host, register, target, mirror, place, make):
    target.parent.mkdir(parents=True)
    part = target.with_name("f.bin.part")
    make({"mirror": mirror / "f.bin", "destination": target, "part": part}[place])
    host.answers["/f"] = whole()
    fetch_it(register("/f"), target, mirror)
    assert fetched(target)


def test_only_files_are_verified(register, tmp_path):
    os.mkfifo(tmp_path / "f.bin")
    with pytest.raises(ConcordError, match="not being a regular file; delete"):
        fetch.verify("tiny/f.bin", tmp_path / "f.bin", register("/f"))


# Destination -------------------------------------------------------------------------------------


def test_wrong_file_in_place_is_replaced(host, register, target, caplog):
    target.parent.mkdir(parents=True)
    target.write_bytes(BODY[:-1] + b"x")
    host.answers["/f"] = whole()
    fetch_it(register("/f"), target)
    assert fetched(target)
    assert hashlib.sha256(BODY[:-1] + b"x").hexdigest() in caplog.text and SHA256 in caplog.text


def test_wrong_file_in_place_does_not_stay(register, target):
    target.parent.mkdir(parents=True)
    target.write_bytes(b"x")
    failure(register("/f"), target)
    assert nothing(target)


def test_destination_that_cannot_be_written(register, tmp_path):
    assert "is a folder" in failure(register("/f"), tmp_path)
    (tmp_path / "file").touch()
    assert "cannot be written" in failure(register("/f"), tmp_path / "file" / "f.bin")


def test_full_disk(host, register, target, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    host.answers["/f"] = whole()
    monkeypatch.setattr(os, "fsync", full)
    assert "cannot be written (No space left on device)" in failure(register("/f"), target)
    assert not target.exists()


def test_file_system_without_locks(host, register, target, monkeypatch):
    def unsupported(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    host.answers["/f"] = in_turn(whole(sent=100_000), ranged())
    fetch_it(register("/f"), target)
    assert fetched(target)
    target.unlink()
    host.answers["/f"] = whole(sent=100_000)
    failure(register("/f"), target)
    assert nothing(target)


# Processes ---------------------------------------------------------------------------------------

PROGRAM = """
import sys
from concord.datasets import fetch
fetch.fetch("tiny/f.bin", sys.argv[2], None, sys.argv[1], timeout=20, pause=0.001)
"""


def start(registry: Path, target: Path) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(registry), str(target)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(condition: Callable[[], bool], process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.01)


def halted(*releases: threading.Event, body: bytes = BODY):
    """Send 100 000 bytes at first and 100 000 more, or at last the rest, at each release."""

    def answer(handler) -> None:
        reply(handler, 200, body, 100_000)
        for number, release in enumerate(releases, 1):
            release.wait(30)
            end = (number + 1) * 100_000 if number < len(releases) else None
            handler.wfile.write(body[number * 100_000 : end])

    return answer


def test_two_processes_at_once(host, register, target):
    release = threading.Event()
    host.answers["/f"] = halted(release)
    registry = register("/f")
    first = start(registry, target)
    wait_for(lambda: bool(host.requests), first)
    second = start(registry, target)
    # The second one says that it waits; only then does the first one get its last bytes.
    assert second.stderr is not None
    waiting = second.stderr.readline()
    release.set()
    assert "waiting" in waiting
    assert first.wait(30) == 0, first.communicate()[1]
    assert second.wait(30) == 0, second.communicate()[1]
    first.communicate()
    second.communicate()
    assert fetched(target) and len(host.requests) == 1


def test_second_process_takes_over(host, register, target):
    """The one that waited goes on where the one that was killed had come to."""
    more, release = threading.Event(), threading.Event()
    host.answers["/f"] = in_turn(halted(more, release), ranged())
    registry = register("/f")
    part = target.with_name("f.bin.part")
    first = start(registry, target)
    wait_for(lambda: part.exists() and part.stat().st_size > 0, first)
    second = start(registry, target)
    assert second.stderr is not None and "waiting" in second.stderr.readline()
    more.set()
    gained = 200_000 // fetch._CHUNK * fetch._CHUNK  # whole reads of what was sent
    wait_for(lambda: part.stat().st_size == gained, first)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert second.wait(30) == 0, second.communicate()[1]
    second.communicate()
    release.set()
    assert fetched(target) and host.requests[1:] == [("/f", f"bytes={gained}-")]


def test_second_process_after_the_first_got_a_wrong_file(host, register, target):
    """The one that waited does not go on in the file that the first one has removed."""
    release = threading.Event()
    host.answers["/f"] = in_turn(halted(release, body=BODY[:-1] + b"x"), ranged())
    registry = register("/f")
    first = start(registry, target)
    wait_for(lambda: bool(host.requests), first)
    second = start(registry, target)
    assert second.stderr is not None and "waiting" in second.stderr.readline()
    release.set()
    assert "instead of" in first.communicate()[1] and first.returncode == 1
    assert second.wait(30) == 0, second.communicate()[1]
    second.communicate()
    assert fetched(target)


def test_kill_during_download(host, register, target):
    release = threading.Event()
    host.answers["/f"] = in_turn(halted(release), ranged())
    registry = register("/f")
    part = target.with_name("f.bin.part")
    process = start(registry, target)
    wait_for(lambda: part.exists() and part.stat().st_size > 0, process)
    process.send_signal(signal.SIGKILL)
    assert process.wait(30) == -signal.SIGKILL
    process.communicate()
    release.set()
    assert not target.exists()
    gained = part.stat().st_size
    fetch_it(registry, target)
    assert fetched(target) and host.requests[-1] == ("/f", f"bytes={gained}-")
