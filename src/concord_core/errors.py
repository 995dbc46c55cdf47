"""The error that tells a user what to mend."""


class ConcordError(Exception):
    """A user's mistake, in one sentence: the rule, the value received, the remedy."""
