"""Checks of kinds: the test suite runs them on built-in kinds, ``concord test`` on plug-ins.

``CHECKS`` of a package are functions of a kind: of a sampler's class, or of another kind's module.
Each returns None if the kind passes what the docstring says, and raises ``Broken``, ``Prototype``
(a warning) or ``Inapplicable`` otherwise.
"""

import inspect
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from concord import kind_contracts, kinds
from concord.errors import ConcordError
from concord.hints import members
from concord.networks.compressions import CompressionKind
from concord.networks.topology import TopologyKind
from concord.options import Options
from concord.rooms import ROOMS, docstring_of, options_of
from concord.sampler import Sampler
from concord_arena.testing import parts, problems, samplers
from concord_arena.testing._outcome import Broken, Inapplicable, Prototype, expect
from concord_arena.testing.variants import SEED
from concord_studies import contracts as studies
from concord_studies.markup import line

__all__ = ["CHECKS", "Broken", "Inapplicable", "Outcome", "Prototype", "run"]

PROTOCOLS = {
    "samplers": Sampler,
    "problems": kind_contracts.ProblemKind,
    "topologies": TopologyKind,
    "partitions": kind_contracts.PartitionKind,
    "schedules": kind_contracts.ScheduleKind,
    "initial": kind_contracts.InitialKind,
    "compressions": CompressionKind,
    "metrics": studies.MetricFamily,
    "figures": studies.FigureKind,
    "tables": studies.TableKind,
}


def is_documented(module: Any) -> None:
    """Check that the kind has a docstring."""
    expect(bool(docstring_of(module).strip()), "it has no docstring")


def name_is_a_text(module: Any) -> None:
    """Check that a display name, if the kind has one, is a text on one line."""
    name = vars(module).get("name" if isinstance(module, type) else "NAME")
    if name is not None:
        expect(isinstance(name, str) and bool(name), f"its name is {name!r}, and no text")
        why = f"its name is {name!r}; write it on one line, without odd spaces"
        expect(name == line(name), why)


def options_are_typed_and_described(module: Any) -> None:
    """Check that a kind's options are a class of ``Options`` whose fields have descriptions."""
    if not isinstance(module, type) and "Params" not in dir(module):
        raise Inapplicable("metrics have no options")
    params = options_of(module)
    suited = isinstance(params, type) and issubclass(params, Options)
    expect(suited, "its options are no class of concord.options.Options")
    for field in msgspec.structs.fields(params):
        described = members(field.type)[0][1].get("description")
        expect(bool(described), f"option {field.name} is not described: Annotated[type, 'text']")


def methods(protocol: Any) -> dict[str, list[str]]:
    """Return the parameter names of a protocol's public methods, by method, without ``self``."""
    return {
        name: list(inspect.signature(member).parameters)[1:]
        for cls in protocol.__mro__
        for name, member in vars(cls).items()
        if inspect.isfunction(member) and not name.startswith("_")
    }


def takes_what_the_contract_says(package: str) -> Callable[[Any], None]:
    """Return the check that a package's kinds have the functions of its contract.

    package: the name of a package of kinds, such as "samplers".
    """

    def takes_what_the_contract_says(module: Any) -> None:
        """Check that the kind's functions have the parameters of its contract."""
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
    for package in ROOMS
}
CHECKS["samplers"] += samplers.CHECKS
CHECKS["problems"] += problems.CHECKS
for _package, _checks in parts.CHECKS.items():
    CHECKS[_package] += _checks


class Outcome(NamedTuple):
    """The outcome of a check: its name; ok, warning, failed or not applicable; the reason."""

    check: str
    ended: str
    why: str = ""


def run(package: str, kind: str, seed: int = 1) -> Iterator[Outcome]:
    """Run all checks of a kind, and yield their outcomes.

    package, kind: such as "samplers" and the name of a plug-in. seed: of all random numbers. A
    ConcordError if the kind cannot be imported.
    """
    module = kinds.find(package, kind, package)
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
    """Return file and line of the innermost frame of an error as text."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.filename}, line {frame.lineno}: "
