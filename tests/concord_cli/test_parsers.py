"""The parser of one command alone, by which jobs start sooner."""

import argparse

import pytest

from concord_cli.__main__ import COMMANDS, _parser


def commands(asked: str = "") -> dict[str, argparse.ArgumentParser]:
    (action,) = (a for a in _parser(asked)._actions if isinstance(a, argparse._SubParsersAction))
    return dict(action.choices)


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {"help"}))
def test_a_command_is_parsed_alone_as_among_all(name):
    alone = commands(name)
    assert list(alone) == [name]
    assert alone[name].format_help() == commands()[name].format_help()
    assert alone[name].get_default("command") is COMMANDS[name]


@pytest.mark.parametrize("asked", ["", "help", "--help", "nothing"])
def test_all_are_known_where_none_of_them_is_asked_for(asked):
    assert commands(asked).keys() == COMMANDS.keys()
