"""The registry and fetching, against a server on the loopback interface."""

import contextlib
import hashlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from concord.errors import ConcordError
from concord_studies.datasets import fetch
from concord_studies.datasets.registry import load_registry

ROOT = Path(__file__).resolve().parents[3]
MIRROR = Path(os.environ.get("CONCORD_DATA_MIRROR") or ROOT.parent / "shared" / "data")

BODY = bytes(range(256)) * 1200  # several reads long
SHA256 = hashlib.sha256(BODY).hexdigest()


class Host:
    """A web server whose answer to each path is a function of the handler."""

    def __init__(self) -> None:
        self.answers: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {}
        self.requests: list[str] = []
        self.closed = threading.Event()
        host = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                host.requests.append(self.path)
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
        self.closed.set()
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
    options = {"timeout": 0.5, **options}
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


def test_registry_fits_the_real_files(tmp_path):
    found = 0
    for name, entry in load_registry().items():
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
        (
            lambda file: file.update(recipe={}),
            "a file has either urls, recipe or in_repository; give",
        ),
        (lambda file: file.pop("urls"), "a file has either urls, recipe or in_repository; give"),
    ],
)
def test_registry_rejects(register, change, words):
    registry = register("/f")
    document = yaml.safe_load(registry.read_text())
    change(document["tiny"]["files"]["f.bin"])
    registry.write_text(yaml.safe_dump(document))
    with pytest.raises(ConcordError, match=re.escape(f"{registry}: tiny.files.f.bin")) as caught:
        load_registry(registry)
    assert words in str(caught.value)


# Hosts -------------------------------------------------------------------------------------------


def test_download(host, register, target):
    host.answers["/f"] = whole()
    assert fetch_it(register("/f"), target) == target
    assert fetched(target)
    assert host.requests == ["/f"]
    fetch_it(register("/f"), target)
    assert len(host.requests) == 1  # what is there and right is kept
    umask = os.umask(0)
    os.umask(umask)
    assert target.stat().st_mode & 0o777 == 0o666 & ~umask  # others may read it


FLIPPED = BODY[:1000] + b"\0" + BODY[1001:]
WRONG = {
    "endless redirect": (status(302, Location="/f"), "redirects"),
    "cut": (whole(sent=100_000), "IncompleteRead(100000 bytes"),
    "truncated": (whole(BODY[:-1]), f"/f has {len(BODY) - 1} bytes instead of {len(BODY)};"),
    "too long": (whole(BODY + b"\0"), f"/f sends more than the {len(BODY)} bytes of the file;"),
    "flipped byte": (
        whole(FLIPPED),
        f"SHA-256 {hashlib.sha256(FLIPPED).hexdigest()} instead of {SHA256}",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_answer_is_told_and_leaves_nothing(host, register, target, what):
    host.answers["/f"], words = WRONG[what]
    assert words in failure(register("/f"), target)
    assert nothing(target)
    if "redirect" not in what:
        assert len(host.requests) == 1  # a wrong file is not asked for twice


def test_404_everywhere(host, register, target):
    message = failure(register("/f", "/g"), target)
    for path in ("/f", "/g"):
        assert f"{host.address}{path} failed: '404 Client Error" in message
    assert message.startswith(f"{target} needs the data file tiny/f.bin")
    assert f"put a copy named f.bin ({len(BODY)} bytes, SHA-256 {SHA256}) into a folder" in message
    assert "CONCORD_DATA_MIRROR" in message and "data_mirror in config/config.yaml" in message
    assert nothing(target) and len(host.requests) == 2


SENT = 1 << 26  # bytes of an endless body, if nobody hangs up


def send_endlessly(handler) -> None:
    handler.send_response(200)
    handler.end_headers()
    for _ in range(0, SENT, len(BODY)):
        handler.wfile.write(BODY)
    handler.server.all_sent = True
    handler.close_connection = True


def drip(head: bytes, what: bytes, closed: threading.Event):
    """Return an answer that begins with ``head`` and goes on with ``what`` every 0.1 s."""

    def answer(handler) -> None:
        handler.wfile.write(head)
        while not closed.wait(0.1):
            handler.wfile.write(what)
        handler.close_connection = True

    return answer


def test_an_endless_body_ends_at_the_registered_size(host, register, target):
    host.answers |= {"/endless": send_endlessly, "/f": whole()}
    host.server.all_sent = False
    fetch_it(register("/endless", "/f"), target)
    assert fetched(target) and host.requests == ["/endless", "/f"]
    assert not host.server.all_sent


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: "])
def test_a_host_that_drips_is_left_for_the_next(host, register, target, head, caplog):
    host.answers |= {"/drip": drip(head, b"x", host.closed), "/f": whole(b"right")}
    began = time.monotonic()
    fetch_it(register("/drip", "/f", body=b"right"), target, timeout=0.2)
    assert target.read_bytes() == b"right" and os.listdir(target.parent) == [target.name]
    assert time.monotonic() - began < 1
    assert "/drip failed: it has not sent 5 bytes in 0.4 s" in caplog.text


# Mirror ------------------------------------------------------------------------------------------


@pytest.fixture
def mirror(tmp_path) -> Path:
    folder = tmp_path / "mirror"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("by", ["argument", "variable"])
def test_mirror_before_hosts(host, register, target, mirror, monkeypatch, by):
    """The argument comes before the variable, whatever that names."""
    (mirror / "f.bin").write_bytes(BODY)
    (mirror / "f.bin").chmod(0o400)
    monkeypatch.setenv("CONCORD_DATA_MIRROR", str(mirror) if by == "variable" else "/nowhere")
    fetch_it(register("/f"), target, mirror if by == "argument" else None)
    assert fetched(target) and host.requests == []
    assert target.stat().st_mode & 0o200  # the copy does not inherit the mirror's permissions


@pytest.mark.parametrize("folder", ["/typo", "~nobody-of-this-name"])
@pytest.mark.parametrize("by", ["data_mirror", "CONCORD_DATA_MIRROR"])
def test_missing_mirror_folder(host, register, target, monkeypatch, by, folder):
    if by == "CONCORD_DATA_MIRROR":
        monkeypatch.setenv(by, folder)
    message = failure(register("/f"), target, folder if by == "data_mirror" else None)
    assert message.startswith(f"{by}: {folder!r} is not a folder") and host.requests == []


@pytest.mark.parametrize("place", ["mirror", "destination"])
def test_a_wrong_copy_gives_way_to_a_good_host(host, register, target, mirror, place, caplog):
    target.parent.mkdir(parents=True)
    {"mirror": mirror / "f.bin", "destination": target}[place].write_bytes(b"x" * len(BODY))
    host.answers["/f"] = whole()
    fetch_it(register("/f"), target, mirror)
    assert fetched(target)
    wrong = hashlib.sha256(b"x" * len(BODY)).hexdigest()
    assert (f"SHA-256 {wrong} instead of {SHA256}" in caplog.text) == (place == "mirror")
