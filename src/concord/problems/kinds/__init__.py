"""Kinds of problems, one module each; the module's name is the kind's."""
