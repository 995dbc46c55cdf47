"""The arena: every sampler on the same tasks, at the same price.

A *task* is a problem on a network, an *entry* a sampler with the way its options are chosen; a cell
of both is a run with the key ``arena``. ``cells`` scores a cell: by the exact law where the sampler
states one (``laws``), by chains otherwise (``chains``). ``prices`` says what an iteration costs and
``tuning`` which settings are tried.

``recommendation`` answers a ``question``: ``screen`` and ``refine`` try settings on ``lattices``,
``predict`` scores them by laws, ``trials`` by chains, and ``describe`` says what was found. Users
call it, ``compete`` and ``biases`` as ``concord.recommend``, ``compare`` and ``bias_map``.
"""


def __getattr__(name: str) -> object:
    """Say where a name went that users had here."""
    if name in ("bias_map", "compare", "recommend"):
        raise AttributeError(f"concord_arena.{name} is concord.{name} now: import concord")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
