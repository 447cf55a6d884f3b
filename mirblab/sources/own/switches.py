r"""switches: which branch of a conditional that authors set is printed, such as `\iflong` and `\iftoggle{long}`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from mirblab.sources.own.tex_files import find_documents, find_readers
from mirblab.sources.shared import macros

# A switch of \newif or of the packages ifthen and etoolbox; toggles are names of their own.
_NEW = re.compile(
    r"\\newif\s*\\if([A-Za-z@]+)|\\(?:new|provide)bool(?:ean)?\s*\{([^{}\\]+)\}|\\(?:new|provide)toggle\s*\{([^{}\\]+)\}"
)
_SET = re.compile(
    r"\\(?:set)?(?P<kind>bool(?:ean)?|toggle)(?P<value>true|false)?\s*\{(?P<name>[^{}\\]+)\}"
    r"(?(value)|\s*\{\s*(?P<given>true|false)\s*\})"
)
_ASKS = re.compile(
    r"\\(?P<asks>if|not)(?P<kind>bool|toggle)\s*\{(?P<name>[^{}\\]+)\}\s*(?=\{)"
    r"|\\ifthenelse\s*\{\s*(?P<negated>\\(?:not|NOT)\s*)?\\boolean\s*\{(?P<boolean>[^{}\\]+)\}\s*\}\s*(?=\{)"
)
_TOGGLE = "toggle "
Settings = list[tuple[str, bool]]


def choose_branches(texts: Mapping[str, str]) -> dict[str, str]:
    r"""Return *texts* with the printed branch of each `\iffalse`, `\iftrue` and conditional that authors set.

    The last setting in the document of a file counts, in TeX's order, that of most files where it has several; a
    switch that is never set there is false, as in TeX.
    """
    names = {name for text in texts.values() for name in _declared(text)}
    settings, bare = dict[str, Settings](), dict(texts)
    if names:
        bare, settings = _settings(texts, names)
    readers = find_readers(texts, find_documents(texts)) if any(settings.values()) else dict.fromkeys(texts, ())
    return {name: _printed(text, names, (settings[each] for each in readers[name])) for name, text in bare.items()}


def _declared(text: str) -> Iterable[str]:
    return (plain or named or f"{_TOGGLE}{toggle}" for plain, named, toggle in _NEW.findall(text))


def _settings(texts: Mapping[str, str], names: Iterable[str]) -> tuple[dict[str, str], dict[str, Settings]]:
    """Return the texts without their settings of the switches *names*, and these by file, in order."""
    plain = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True) if not name.startswith(_TOGGLE))
    setting = re.compile(
        rf"\\(?P<switch>{plain})(?P<is>true|false)(?![A-Za-z@])|{_SET.pattern}" if plain else _SET.pattern
    )
    bare, found = dict[str, str](), dict[str, Settings]()
    for file, text in texts.items():
        found[file] = [_setting(match) for match in setting.finditer(text)]
        bare[file] = setting.sub("", _NEW.sub("", text))
    return bare, found


def _setting(match: re.Match[str]) -> tuple[str, bool]:
    parts = match.groupdict()
    if parts.get("switch"):
        return parts["switch"], parts["is"] == "true"
    return _name(parts["kind"], parts["name"]), (parts["value"] or parts["given"]) == "true"


def _name(kind: str, name: str) -> str:
    return f"{_TOGGLE}{name}" if kind == "toggle" else name


def _printed(text: str, names: Iterable[str], settings: Iterable[Settings]) -> str:
    switches = dict.fromkeys(names, False)
    for each in settings:
        switches |= {name: value for name, value in each if name in switches}
    values = {f"if{name}": value for name, value in switches.items()} | {"iftrue": True, "iffalse": False}
    return _choose_arguments(macros.choose_branches(text, values), switches)


def _choose_arguments(text: str, switches: Mapping[str, bool]) -> str:
    r"""Return *text* with one of the two last arguments of each `\iftoggle`, `\ifbool` and `\ifthenelse`."""
    at = 0
    while match := _ASKS.search(text, at):
        name = match["boolean"] or _name(match["kind"], match["name"])
        branches, end = macros.read_arguments(text, match.end(), 2)
        if name not in switches or len(branches) < 2:
            at = match.end()
            continue
        is_first = switches[name] is not bool(match["negated"] or match["asks"] == "not")
        text, at = text[: match.start()] + branches[0 if is_first else 1] + text[end:], match.start()
    return text
