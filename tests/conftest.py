"""Run before any test module: threads and kernels as in the commands, before numpy is imported."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

import everything
from concord import kinds
from concord_cli.__main__ import settle
from reliability import Record, Reliability

settle()

# The same examples on every machine; no deadline, since machines differ in speed and load.
settings.register_profile("concord", deadline=None, derandomize=True)
settings.load_profile("concord")


everything.use()
IN_USE = dict(kinds._files)
PACKAGES = {name: of for name, of in sys.modules.items() if name.startswith("concord_plugins.")}


@pytest.fixture(autouse=True)
def _all_kinds() -> None:
    """Use the plug-ins of all studies, whatever the test before has used."""
    kinds.studies[:] = everything.STUDIES
    kinds._files.clear()
    kinds._files.update(IN_USE)
    sys.modules.update(PACKAGES)  # a test's study may be called like one of these


RECORD = Record()
FAILED = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--effort",
        type=int,
        default=1,
        help="how many times as many faults to inject and inputs to try (default 1)",
    )


@pytest.fixture(scope="session")
def effort(request: pytest.FixtureRequest) -> int:
    """How many times the usual number of faults to inject and of inputs to try."""
    return request.config.getoption("--effort")


@pytest.fixture
def reliability(request: pytest.FixtureRequest) -> Iterator[Reliability]:
    """Note what was tried: reliability(suite, what, tried, failed, rule).

    A test that fails and has noted no failure is noted itself.
    """

    def note(*row: str | int) -> None:
        # A property of the test's report reaches the process that sums up, whichever ran the test.
        request.node.user_properties.append(("reliability", row))

    noted = Reliability(note)
    yield noted
    if request.node.stash.get(FAILED, False) and not noted.failed:
        note(request.path.parent.name, request.node.name, 1, 1, "the test ends well")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[Any]:
    report = yield
    if report.failed:
        item.stash[FAILED] = True
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "teardown":
        for name, row in report.user_properties:
            if name == "reliability":
                RECORD.add(*row)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if RECORD.rows:
        page = RECORD.write()
        terminalreporter.section("reliability: results/reliability.md")
        # The page would push what failed out of sight, so it is shown to those who asked for it.
        if terminalreporter.config.getoption("--effort") > 1:
            terminalreporter.write(page)
