"""Kinds of problems whose data are files: of a study, or registered data sets."""
