"""A real SLURM of one node, which listens on this machine's loopback only.

Its configuration must be in /etc/slurm, since Snakemake's jobs are not told of another one; what
else it writes is in a folder of its own. Its daemons are children of the tests: they are stopped by
their own process ids, and end with the tests even if those are killed.
"""

import fcntl
import importlib.util
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

import psutil

CONFIGURATION = Path("/etc/slurm/slurm.conf")
MEMORY_GROUPS = Path("/sys/fs/cgroup/memory")
MARK = "# The SLURM of Concord's tests (tests/cluster). Remove it if no test is running.\n"
COMMANDS = ("munged", "slurmctld", "slurmd", "sbatch", "scancel", "squeue", "setpriv")
CLUSTER = "concord-tests"
# Not the default one, so that a job is there only if it was sent there.
PARTITION = "tests"

TEMPLATE = """{mark}ClusterName={cluster}
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin={task_plugin}
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
MaxArraySize=5000
MinJobAge=3600
FirstJobId={first}
SchedulerParameters=sched_interval=2,bf_interval=2
KillWait=5
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory}
PartitionName=others Nodes={host} Default=YES
PartitionName={partition} Nodes={host}
"""


def missing() -> str | None:
    """Return what this machine lacks to run a SLURM, in one sentence."""
    if importlib.util.find_spec("snakemake_executor_plugin_slurm") is None:
        return "the SLURM plugin is not installed: .venv/bin/python -m pip install -e '.[cluster]'"
    if os.geteuid() != 0:
        return "only root can start SLURM's daemons"
    if "SLURM_CONF" in os.environ:
        return f"SLURM is configured here already, by {os.environ['SLURM_CONF']}"
    lacking = [command for command in COMMANDS if shutil.which(command) is None]
    if lacking:
        return f"there is no {lacking[0]}: on Debian, apt-get install slurm-wlm munge"
    try:
        socket.gethostbyname(host())
    except OSError:
        return f"this machine's name, {host()}, has no address: add it to /etc/hosts"
    return None


def missing_for_memory() -> str | None:
    """Return what this machine lacks to keep jobs within their memory, in one sentence."""
    if os.access(MEMORY_GROUPS / "cgroup.procs", os.W_OK):
        return None
    return f"SLURM cannot limit memory here: there are no control groups in {MEMORY_GROUPS}"


def host() -> str:
    """Return the machine's name as SLURM sees it, without a domain."""
    return socket.gethostname().partition(".")[0]


class OthersConfiguration(Exception):
    """SLURM is configured here already."""


@contextmanager
def claimed(path: Path = CONFIGURATION) -> Iterator[IO[str]]:
    """Yield the configuration file, empty but for its mark; remove it in the end.

    What tests that were killed have left is taken over; it is locked while tests run.

    Raises
    ------
    OthersConfiguration
        If it is somebody else's, or of tests that are running.
    """
    with open(path, "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OthersConfiguration(f"another test run uses {path}") from None
        file.seek(0)
        text = file.read()
        if text and not text.startswith(MARK):
            raise OthersConfiguration(f"SLURM is configured here already, by {path}")
        file.truncate(0)
        try:
            yield file
        finally:
            path.unlink()


class Slurm:
    """A running SLURM: its daemons, and what its commands say."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = free_ports(2)
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, *options: str, ready: Callable[[], bool]) -> None:
        """Start a daemon and wait until it is ready."""
        log = self.folder / f"{name}.log"
        command = ["setpriv", "--pdeathsig", "TERM", name, *options]
        # Beside that file it looks for settings of control groups.
        environment = {**os.environ, "SLURM_CONF": f"{self.folder}/slurm.conf"}
        with open(log, "wb") as file:
            daemon = subprocess.Popen(
                command, env=environment, stdout=file, stderr=subprocess.STDOUT
            )
        self.daemons[name] = daemon
        with suppress(TimeoutError):
            wait_until(lambda: daemon.poll() is not None or ready(), 60)
        if daemon.poll() is not None or not ready():
            raise RuntimeError(f"{name} did not start:\n{log.read_text()[-2000:]}")

    def stop(self) -> None:
        """End all jobs, then the daemons in reverse order."""
        try:
            if "slurmd" in self.daemons:
                say("scancel", "--user=root")
                wait_until(lambda: not self.jobs(), 30)
        finally:
            for daemon in reversed(self.daemons.values()):
                daemon.terminate()
                try:
                    daemon.wait(30)
                except subprocess.TimeoutExpired:
                    daemon.kill()
                    daemon.wait()
            for process in of_its_jobs():
                process.kill()
            for group, *_ in os.walk(MEMORY_GROUPS / f"slurm_{host()}", topdown=False):
                with suppress(OSError):
                    os.rmdir(group)

    def ended(self, folder: Path) -> list[dict[str, str]]:
        """Return the jobs of a folder that have ended."""
        return [job for job in self.jobs("--states=all") if job["folder"] == str(folder)]

    @staticmethod
    def jobs(*options: str) -> list[dict[str, str]]:
        """Return the jobs that have not ended, or those that the options of squeue select."""
        names = ("id", "state", "memory", "limit", "partition", "folder", "comment")
        table = say("squeue", "--noheader", "--format=%i|%T|%m|%l|%P|%Z|%k", *options)
        return [dict(zip(names, line.split("|"), strict=True)) for line in table.splitlines()]


@contextmanager
def running() -> Iterator[Slurm]:
    """Run a SLURM for the time of a with statement.

    Raises
    ------
    OthersConfiguration
        If SLURM is configured here already.
    """
    with ExitStack() as stack:
        file = stack.enter_context(claimed())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="concord-slurm-")))
        folder.chmod(0o711)  # munge wants its socket to be within everybody's reach
        slurm = Slurm(folder)
        file.write(
            TEMPLATE.format(
                mark=MARK,
                cluster=CLUSTER,
                first=1 + secrets.randbelow(10**7),
                task_plugin="task/none" if missing_for_memory() else "task/cgroup",
                host=host(),
                ports=slurm.ports,
                folder=folder,
                cpus=4 * (os.cpu_count() or 1),  # jobs of tests mostly wait
                memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20,
                partition=PARTITION,
            )
        )
        file.flush()
        (folder / "slurm.conf").symlink_to(CONFIGURATION)
        (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nConstrainRAMSpace=yes\n")
        for part in ("state", "spool"):
            (folder / part).mkdir()
        key = folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(1024))
        files = {"key-file": "key", "socket": "socket", "pid-file": "pid", "seed-file": "seed"}
        options = [f"--{option}={folder}/munge.{ending}" for option, ending in files.items()]
        options += [f"--log-file={folder}/munge.log"]

        stack.callback(slurm.stop)
        slurm.start("munged", "--foreground", *options, ready=(folder / "munge.socket").exists)
        slurm.start("slurmctld", "-D", ready=lambda: "is UP" in say("scontrol", "ping"))
        slurm.start("slurmd", "-D", ready=lambda: "idle" in say("sinfo", "--noheader"))
        yield slurm


def of_its_jobs() -> list[psutil.Process]:
    """Return what its jobs still run: SLURM, which goes by parents alone, does not end all."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("SLURM_CLUSTER_NAME") == CLUSTER:
                found.append(process)
    return found


def say(*command: str) -> str:
    """Return what one of SLURM's commands prints."""
    return subprocess.run(command, capture_output=True, text=True, timeout=30).stdout


def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    """Wait until a condition holds.

    Raises
    ------
    TimeoutError
        If it does not within so many seconds.
    """
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.1)


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
