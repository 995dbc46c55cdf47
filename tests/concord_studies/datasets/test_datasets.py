"""The registry and fetching, against a server on the loopback interface."""

import contextlib
import errno
import hashlib
import os
import re
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

from concord.errors import ConcordError
from concord_studies.datasets import fetch
from concord_studies.datasets import registry as registries
from concord_studies.datasets.registry import find, load_registry

ROOT = Path(__file__).resolve().parents[3]
MIRROR = Path(os.environ.get("CONCORD_DATA_MIRROR") or ROOT.parent / "shared" / "data")

BODY = bytes(range(256)) * 1200  # several reads long
SHA256 = hashlib.sha256(BODY).hexdigest()
HTML = b"\n<!DOCTYPE html>\n<html><body>We moved.</body></html>"


class Host:
    """A web server whose answer to each path is a function of the handler."""

    def __init__(self) -> None:
        self.answers: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {}
        self.requests: list[str] = []
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


def test_registry_has_the_data_sets_of_the_papers():
    registry = load_registry()
    ours = {name for name in registry if name.startswith("posteriordb_")}
    assert len(ours) == 14 and {len(registry[name].files) for name in ours} == {2}
    assert {name: len(of.files) for name, of in registry.items() if name not in ours} == {
        "a9a": 1,
        "magic": 1,
        "mnist": 4,
        "svhn": 1,
        "breast_cancer_posterior": 1,
        **dict.fromkeys(("extra2024_linear", "extra2024_synthetic", "extra2024_cancer"), 1),
        **dict.fromkeys(("extra2024_accuracy_synthetic", "extra2024_accuracy_cancer"), 1),
        **dict.fromkeys(("depsgld2026_linear", "depsgld2026_cancer"), 1),
        **dict.fromkeys(("extra2024_w2", "dglmc2021_gaussian", "fald2023_toy"), 1),
        **dict.fromkeys(("qlsd2021_synthetic", "mollenhoff2025_digits"), 1),
    }
    svhn = registry["svhn"].files["test_32x32.mat"]
    assert (svhn.bytes, svhn.sha256[:8]) == (64275384, "cdce80df")


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


def test_registry_is_read_once_until_it_changes(register, monkeypatch):
    """Planning asks for it of every run."""
    registry, read = register("/f"), []
    load = registries.load_yaml
    monkeypatch.setattr(registries, "load_yaml", lambda path: read.append(path) or load(path))
    assert load_registry(registry) == load_registry(registry)
    assert read == [registry]
    document = yaml.safe_load(registry.read_text())
    document["tiny"]["files"]["f.bin"]["bytes"] = 12345
    registry.write_text(yaml.safe_dump(document))
    assert load_registry(registry)["tiny"].files["f.bin"].bytes == 12345


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda file: file.pop("sha256"), "'sha256' is missing"),
        (lambda file: file.update(sha256="F" * 64), "not 64 lower-case"),
        (lambda file: file.update(md5="0"), "md5: unknown key"),
        (lambda file: file.update(bytes=0), "bytes: 0 is not"),
        (lambda file: file.update(bytes="many"), "not an integer"),
        (lambda file: file.update(urls=[]), "urls: [] has 0 entries; give 1 or more"),
        (lambda file: file.update(urls=["file:///etc/hosts"]), "not a web address"),
        (lambda file: file.update(made={}), "a file has either urls, made or kept; give one"),
        (lambda file: file.pop("urls"), "a file has either urls, made or kept; give one"),
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


@pytest.mark.parametrize("text", ["", "- a", "a: [", "../a: {}", "1: {}", "tiny: {files: {}}"])
def test_registry_rejects_other_documents(tmp_path, text):
    registry = tmp_path / "datasets.yaml"
    with pytest.raises(ConcordError, match="cannot be read"):
        load_registry(registry)
    registry.write_text(text)
    with pytest.raises(ConcordError, match=re.escape(str(registry))):
        load_registry(registry)


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
        find(name)


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


def test_redirect(host, register, target):
    host.answers["/old"] = status(302, Location="/f")
    host.answers["/f"] = whole()
    fetch_it(register("/old"), target)
    assert fetched(target)


FLIPPED, LONG = BODY[:1000] + b"\0" + BODY[1001:], bytes(len(BODY) + (3 << 20))
WRONG = {
    "endless redirect": (status(302, Location="/f"), "redirects"),
    "cut": (whole(sent=100_000), "/f failed: 'IncompleteRead(100000 bytes read"),
    "truncated": (whole(BODY[:-1]), f"/f has {len(BODY) - 1} bytes instead of {len(BODY)};"),
    "too long": (whole(BODY + b"\0"), f"/f has {len(BODY) + 1} bytes instead of {len(BODY)};"),
    "flipped byte": (
        whole(FLIPPED),
        f"SHA-256 {hashlib.sha256(FLIPPED).hexdigest()} instead of {SHA256}",
    ),
    "far too long": (whole(LONG), f"sends more than the registered {len(BODY)} bytes"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_answer_is_told_and_leaves_nothing(host, register, target, what):
    host.answers["/f"], words = WRONG[what]
    assert words in failure(register("/f"), target)
    assert nothing(target)
    if "redirect" not in what:
        assert len(host.requests) == 1  # a wrong file is not asked for twice


def test_slow_host(host, register, target):
    release = threading.Event()
    host.answers["/f"] = lambda handler: release.wait(5)
    began = time.monotonic()
    message = failure(register("/f"), target, timeout=0.05)
    assert time.monotonic() - began < 2
    release.set()
    assert "/f failed: 'timed out'" in message and nothing(target)


def test_next_host_after_a_wrong_file(host, register, target, caplog):
    host.answers["/f"] = whole(HTML)
    host.answers["/g"] = whole()
    fetch_it(register("/f", "/g"), target)
    assert fetched(target)
    assert f"{host.address}/f has {len(HTML)} bytes instead of {len(BODY)}" in caplog.text


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


def test_slow_files_have_time(host, register, target, monkeypatch):
    """A minute, and what the file takes at 20 kB/s."""
    limits = []

    def within(seconds: float):
        limits.append(seconds)
        return contextlib.nullcontext()

    monkeypatch.setattr(fetch, "_within", within)
    host.answers["/f"] = whole()
    fetch_it(register("/f"), target)
    assert limits == [60 + len(BODY) / 20_000]


def test_404_everywhere(host, register, target):
    message = failure(register("/f", "/g"), target)
    for path in ("/f", "/g"):
        assert f"{host.address}{path} failed: '404 Client Error" in message
    assert message.startswith(f"{target} needs the data file tiny/f.bin")
    assert f"put a copy named f.bin ({len(BODY)} bytes, SHA-256 {SHA256}) into a folder" in message
    assert "CONCORD_DATA_MIRROR" in message and "data_mirror in config/config.yaml" in message
    assert nothing(target) and len(host.requests) == 2


def test_no_network(register, target):
    with socket.socket() as free:  # a port where nobody listens
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/f"
    message = failure(register(url), target)
    assert f"{url} failed: '[Errno 111] Connection refused'" in message
    assert "into a folder and name that folder" in message


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


def test_mirror_without_the_file(host, register, target, mirror):
    host.answers["/f"] = whole()
    fetch_it(register("/f"), target, mirror)
    assert fetched(target)
    target.unlink()
    host.answers["/f"] = status(404)
    message = failure(register("/f"), target, mirror)
    assert f"{mirror / 'f.bin'} cannot be read (No such file or directory)" in message
    assert message.endswith(f"into {mirror}")


@pytest.mark.parametrize("folder", ["/typo", "~nobody-of-this-name", "~nobody-of-this-name/data"])
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
    assert f"SHA-256 {wrong} instead of {SHA256}" in caplog.text


def test_wrong_copies_and_no_host(register, target, mirror):
    """What is wrong in place does not stay."""
    target.parent.mkdir(parents=True)
    target.write_bytes(b"x")
    (mirror / "f.bin").write_bytes(HTML)
    message = failure(register("/f"), target, mirror)
    assert f"{mirror / 'f.bin'} has {len(HTML)} bytes instead of {len(BODY)};" in message
    assert "404" in message
    assert nothing(target)


def test_files_of_another_size_are_not_read(host, register, target, mirror):
    """Two files of 30 GiB, which take no place: in the mirror and in place."""
    target.parent.mkdir(parents=True)
    for path in (mirror / "f.bin", target):
        path.touch()
        os.truncate(path, 30 << 30)
    host.answers["/f"] = whole()
    began = time.monotonic()
    fetch_it(register("/f"), target, mirror)
    assert time.monotonic() - began < 3
    assert fetched(target)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
@pytest.mark.parametrize("place", ["mirror", "destination"])
def test_only_files_are_read(host, register, target, mirror, place, make):
    target.parent.mkdir(parents=True)
    make({"mirror": mirror / "f.bin", "destination": target}[place])
    host.answers["/f"] = whole()
    fetch_it(register("/f"), target, mirror)
    assert fetched(target)


def test_only_files_are_verified(register, tmp_path):
    os.mkfifo(tmp_path / "f.bin")
    with pytest.raises(ConcordError, match="is not a regular file; delete"):
        registries.verify("tiny/f.bin", tmp_path / "f.bin", register("/f"))


# Destination -------------------------------------------------------------------------------------


def test_links_and_pipes_in_place(host, register, target, tmp_path):
    """A link to the right file is as good as that; what it leads to is never written to."""
    host.answers["/f"] = whole()
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    right.write_bytes(BODY)
    wrong.write_bytes(b"mine")
    target.parent.mkdir(parents=True)
    target.symlink_to(right)
    fetch_it(register("/f"), target)
    assert target.is_symlink() and not host.requests
    for make in (lambda: target.symlink_to(wrong), lambda: os.mkfifo(target)):
        target.unlink()
        make()
        fetch_it(register("/f"), target)
        assert fetched(target) and not target.is_symlink()
    assert wrong.read_bytes() == b"mine"
    target.unlink()
    target.symlink_to("nowhere")
    assert f"{target}: it is a link, which is not written through" in failure(
        register("/f"), target
    )


def test_destination_that_cannot_be_written(register, tmp_path):
    assert "Is a directory" in failure(register("/f"), tmp_path)
    (tmp_path / "file").touch()
    assert "it is no folder; remove it" in failure(register("/f"), tmp_path / "file" / "f.bin")


def test_full_disk(host, register, target, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    host.answers["/f"] = whole()
    monkeypatch.setattr(os, "replace", full)
    assert "cannot be written (No space left on device)" in failure(register("/f"), target)
    assert nothing(target)


def test_kill_during_download(host, register, target):
    """What a killed process left is removed by the next one, and never seen as the file."""
    release = threading.Event()

    def halted(handler) -> None:
        reply(handler, 200, BODY, 100_000)
        release.wait(30)

    host.answers["/f"] = halted
    registry = register("/f")
    program = (
        "from concord_studies.datasets.fetch import fetch;"
        f"fetch('tiny/f.bin', {str(target)!r}, None, {str(registry)!r})"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    deadline = time.monotonic() + 30
    while not (target.parent.is_dir() and any(p.stat().st_size for p in target.parent.iterdir())):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    process.wait()
    release.set()
    assert not target.exists()
    host.answers["/f"] = whole()
    fetch_it(registry, target)
    assert fetched(target)
