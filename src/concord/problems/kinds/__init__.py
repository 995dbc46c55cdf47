"""Kinds of problems, a module each, found by its file name (``concord.problems``)."""
