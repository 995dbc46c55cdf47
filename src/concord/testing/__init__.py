"""Tests of kinds: of what is built in by the test suite, of a plug-in by ``concord test``.

``CHECKS`` of a package are functions of a kind: of a sampler's class, and of other kinds' modules.
Each returns nothing if the promise in its docstring is kept, and raises ``Broken``, ``Prototype``
(a warning) or ``Inapplicable`` otherwise.
"""

import inspect
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from concord import contracts
from concord.errors import ConcordError
from concord.markup import line
from concord.networks.compressions import CompressionKind
from concord.networks.topology import TopologyKind
from concord.options import Options, members
from concord.plugins import PACKAGES, docstring_of, options_of, plugin
from concord.sampler import Sampler
from concord.testing import parts, problems, samplers
from concord.testing._outcome import Broken, Inapplicable, Prototype, expect
from concord.testing.variants import SEED

__all__ = ["CHECKS", "Broken", "Inapplicable", "Outcome", "Prototype", "run"]

PROTOCOLS = {
    "samplers": Sampler,
    "problems": contracts.ProblemKind,
    "topologies": TopologyKind,
    "partitions": contracts.PartitionKind,
    "schedules": contracts.ScheduleKind,
    "initial": contracts.InitialKind,
    "compressions": CompressionKind,
    "metrics": contracts.MetricFamily,
    "figures": contracts.FigureKind,
    "tables": contracts.TableKind,
}


def is_documented(module: Any) -> None:
    """Its docstring says what it is."""
    expect(bool(docstring_of(module).strip()), "it has no docstring")


def name_is_a_text(module: Any) -> None:
    """The name that readers see in place of its key is a text on one line."""
    name = vars(module).get("name" if isinstance(module, type) else "NAME")
    if name is not None:
        expect(isinstance(name, str) and bool(name), f"its name is {name!r}, and no text")
        why = f"its name is {name!r}; write it on one line, without odd spaces"
        expect(name == line(name), why)


def options_are_typed_and_described(module: Any) -> None:
    """Its options are a class of ``Options`` whose fields have a description."""
    if not isinstance(module, type) and "Params" not in dir(module):
        raise Inapplicable("metrics have no options")
    params = options_of(module)
    suited = isinstance(params, type) and issubclass(params, Options)
    expect(suited, "its options are no class of concord.options.Options")
    for field in msgspec.structs.fields(params):
        described = members(field.type)[0][1].get("description")
        expect(bool(described), f"option {field.name} is not described: Annotated[type, 'text']")


def methods(protocol: Any) -> dict[str, list[str]]:
    """Return the parameters of a protocol's methods, by name, without ``self``."""
    return {
        name: list(inspect.signature(member).parameters)[1:]
        for cls in protocol.__mro__
        for name, member in vars(cls).items()
        if inspect.isfunction(member) and not name.startswith("_")
    }


def takes_what_the_contract_says(package: str) -> Callable[[Any], None]:
    """Return the check of a package's functions."""

    def takes_what_the_contract_says(module: Any) -> None:
        """Its functions have the parameters of its contract."""
        for name, wanted in methods(PROTOCOLS[package]).items():
            expect(name in dir(module), f"it has no {name}")
            found = list(inspect.signature(getattr(module, name)).parameters)
            found = found[isinstance(module, type) :]  # without self
            expect(found == wanted, f"{name} takes {found}, not {wanted}")

    return takes_what_the_contract_says


CHECKS: dict[str, tuple[Callable[[Any], None], ...]] = {
    package: (
        *(is_documented, name_is_a_text, options_are_typed_and_described),
        takes_what_the_contract_says(package),
    )
    for package in PACKAGES
}
CHECKS["samplers"] += samplers.CHECKS
CHECKS["problems"] += problems.CHECKS
for _package, _checks in parts.CHECKS.items():
    CHECKS[_package] += _checks


class Outcome(NamedTuple):
    """How a check of a kind ended: ok, warning, failed or not applicable; and why."""

    check: str
    ended: str
    why: str = ""


def run(package: str, kind: str, seed: int = 1) -> Iterator[Outcome]:
    """Yield the outcome of each check of a kind; a ConcordError if it cannot be imported.

    ``seed``: of all that the tests of a sampler draw.
    """
    module = plugin(package, kind, package)
    if seed < 0:
        raise ConcordError(f"--seed: {seed} is negative; give 0 or more")
    SEED.set(seed)
    for check in CHECKS[package]:
        name = check.__name__.replace("_", " ")
        try:
            check(module)
        except Broken as error:
            yield Outcome(name, "failed", str(error))
        except Prototype as error:
            yield Outcome(name, "warning", str(error))
        except Inapplicable as error:
            yield Outcome(name, "not applicable", str(error))
        except ConcordError as error:
            yield Outcome(name, "failed", f"it refuses what it should take: {error}")
        except Exception as error:
            yield Outcome(name, "failed", f"{_place(error)}{type(error).__name__}: {error}")
        else:
            yield Outcome(name, "ok")


def _place(error: Exception) -> str:
    """Return the file and line of a plug-in's error."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.filename}, line {frame.lineno}: "
