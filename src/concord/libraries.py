"""Libraries that take long to import, and that not every job needs at its start."""

from importlib import import_module
from types import ModuleType

from concord.errors import ConcordError


def optional(module: str, package: str, what: str) -> ModuleType:
    """Import a module of a package that the library works without, and return it.

    what: what needs the package, for the ConcordError where it is missing.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] != module.partition(".")[0]:  # what it needs itself
            raise
        raise ConcordError(
            f"{what} needs the package {package}, which is missing; run 'pip install {package}'"
        ) from None


def pictures(of: str) -> ModuleType:
    """Return the module of pictures of ``runs`` or ``graphs``.

    It is found by its name, since it imports those of whose objects it makes pictures.
    """
    return import_module(f"concord.pictures.{of}")


def special() -> ModuleType:
    """Return SciPy's special functions."""
    import scipy.special  # as said above

    return scipy.special
