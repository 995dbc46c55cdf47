"""Contract tests of kinds: the tests run them on what is built in, ``concord test`` on plug-ins.

``CHECKS`` of a package are functions of a kind: of a sampler's class, or of another kind's module.
Each returns None if the kind passes what the docstring says, and raises ``Broken``, or
``Inapplicable`` where there is nothing to test.
"""

import inspect
import textwrap
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
import pandas

from concord import contracts, kinds
from concord.arguments import class_of
from concord.errors import ConcordError
from concord.hints import meaning_of
from concord.kinds import declaration_of, options_of
from concord.networks.compressions import CompressionKind
from concord.networks.topology import TopologyKind
from concord.options import Options
from concord.sampler import Algorithm
from concord_arena.testing import parts, samplers
from concord_arena.testing.variants import SEED, Broken, Inapplicable, expect
from concord_studies import contracts as studies
from concord_studies.catalog import docstring_of
from concord_studies.markup import line
from concord_studies.metrics import MetricKind

__all__ = ["CHECKS", "Broken", "Inapplicable", "Outcome", "run", "test"]

PROTOCOLS = {
    "samplers": Algorithm,
    "problems": contracts.ProblemKind,
    "topologies": TopologyKind,
    "partitions": contracts.PartitionKind,
    "schedules": contracts.ScheduleKind,
    "initial": contracts.InitialKind,
    "compressions": CompressionKind,
    "metrics": MetricKind,
    "figures": studies.FigureKind,
    "layers": studies.LayerKind,
    "tables": studies.TableKind,
}


def is_documented(module: Any) -> None:
    """Check that the kind has a docstring, and that its name, if any, is a text on one line."""
    expect(docstring_of(module).strip(), "it has no docstring")
    stated = vars(module) if isinstance(module, type) else vars(declaration_of(module))
    name = stated.get("name") or "a name"
    fits = isinstance(name, str) and name == line(name)
    expect(fits, f"its name is {name!r}; write a text on one line, without odd spaces")


def options_are_typed_and_described(module: Any) -> None:
    """Check that a kind's options are a class of ``Options`` whose fields have descriptions."""
    if not isinstance(module, type) and "Params" not in dir(module):
        raise Inapplicable("metrics have no options")
    params = options_of(module)
    suited = isinstance(params, type) and issubclass(params, Options)
    expect(suited, "its options are no class of concord.options.Options")
    for field in msgspec.structs.fields(params):
        described = bool(meaning_of(field.type))
        expect(described, f"option {field.name} is not described: Annotated[type, 'text']")


def list_methods(protocol: Any) -> dict[str, list[str]]:
    """Return the parameter names of a protocol's public methods, by method, without ``self``."""
    return {
        name: list(inspect.signature(member).parameters)[1:]
        for cls in protocol.__mro__
        for name, member in vars(cls).items()
        if inspect.isfunction(member) and not name.startswith("_")
    }


def _signature_check(protocol: Any) -> Callable[[Any], None]:
    """Return a check that a kind has the functions of a protocol, with the same parameters."""

    def takes_what_the_contract_says(module: Any) -> None:
        """Check that a kind has the protocol's functions, with the same parameters."""
        for name, expected in list_methods(protocol).items():
            expect(name in dir(module), f"it has no {name}")
            parameters = list(inspect.signature(getattr(module, name)).parameters)
            parameters = parameters[isinstance(module, type) :]  # without self
            expect(parameters == expected, f"{name} takes {parameters}, not {expected}")

    return takes_what_the_contract_says


CHECKS: dict[str, tuple[Callable[[Any], None], ...]] = {
    package: (
        *(is_documented, options_are_typed_and_described, _signature_check(protocol)),
        *(samplers.CHECKS if package == "samplers" else parts.CHECKS.get(package, ())),
    )
    for package, protocol in PROTOCOLS.items()
}


class Outcome(NamedTuple):
    """The outcome of a check: its name; how it ended (ok, failed, not applicable); the reason."""

    check: str
    ended: str
    why: str = ""


class Outcomes(pandas.DataFrame):
    """The outcomes of checks, a row each; the representation has each reason whole."""

    @property
    def _constructor(self) -> type[pandas.DataFrame]:
        """Return the class of a part of the table, such as the checks that failed."""
        return Outcomes

    def __repr__(self) -> str:
        """Return a line for each check, and below it why it ended so, wrapped."""
        if [*self.columns] != [*Outcome._fields]:
            return super().__repr__()
        width = max(map(len, self["ended"]), default=0) + 2
        lines = []
        for check, ended, why in self.itertuples(index=False):
            reason = (f"{'':{width}}{line}" for line in textwrap.wrap(why, 96 - width))
            lines += [f"{ended:{width}}{check}", *reason]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the table as HTML with each reason whole."""
        with pandas.option_context("display.max_colwidth", None):
            return str(self.to_html())


def test(sampler: str | type[Algorithm], seed: int = 1) -> pandas.DataFrame:  # noqa: PT028
    """Test the contract of a sampler, as the command ``concord test`` does.

    Parameters
    ----------
    sampler
        A class of one's own that derives from ``concord.Sampler``, or the name of a kind.
    seed
        Of all random numbers.

    Returns
    -------
    pandas.DataFrame
        A row for each check: ``check``, how it ``ended`` (ok, failed or not applicable), and
        ``why``.

    Raises
    ------
    ConcordError
        If there is no such sampler.

    Examples
    --------
    >>> import concord
    >>> class Exact(concord.FullGradientSampler):
    ...     def step(self, state, k, problem, network, rng):
    ...         return state._replace(x=rng.standard_normal(state.x.shape))
    >>> bool((concord.test(Exact).ended == "failed").any())
    True
    """
    return Outcomes(run("samplers", kinds.add_class(class_of(sampler, "sampler")), seed))


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
        except Inapplicable as error:
            yield Outcome(name, "not applicable", str(error))
        except (Broken, ConcordError) as error:
            yield Outcome(name, "failed", str(error))
        except (Exception, SystemExit) as error:
            yield Outcome(name, "failed", f"{_locate(error)}{type(error).__name__}: {error}")
        else:
            yield Outcome(name, "ok")


def _locate(error: BaseException) -> str:
    """Return the file and line where an error was raised, as text."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.filename}, line {frame.lineno}: "
