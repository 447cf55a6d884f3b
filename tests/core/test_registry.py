"""The registry, cards and suites as files: what is wrong with one is said with its name and place, never a crash."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from mirblab.app import suite_files
from mirblab.app.doctor import registries
from mirblab.core import registry
from mirblab.core.errors import MirblabError
from mirblab.core.registry import read_toml
from mirblab.data.collection import Card
from mirblab.display import grades
from mirblab.encoders.encoding import encoder
from mirblab.encoders.hosted.chat import read_prompt
from mirblab.formula.rewriting.logic import expand_definitions
from mirblab.retrieval import rerank
from mirblab.retrieval.systems import system
from mirblab.sources import catalogue, mini
from mirblab.train.recipes import recipe

KINDS = ("encoders", "systems", "rerankers", "collections", "prompts", "trained", "scales", "definitions")
SHIPPED = Path(registry.__file__).parents[1] / "registry"
VALUES = [
    *("nan", "inf", "1e400", "-1", "0", "true", '""', '"x"', "[]", "{}", "[1, 'a']", "2020-01-01", "9" * 5000),
    *('"/\\u0000"', '"~nobody-here/x"', f'"{"a" * 300}"', "{ a = 2020-01-01 }", "[[1.5]]", '"https://x/?key=1"'),
]

ENTRY = re.compile(r"\b(?:encoder|system|reranker) '[^']+'")
# What each kind of entry is used for, entry by entry, and what is used of all of them together.
BY_NAME: dict[str, Callable[[str], object]] = {
    "encoders": lambda name: encoder(name).space("query", "x"),
    "systems": lambda name: system(name).key,
    "rerankers": rerank.reranker_settings,
    "prompts": lambda name: read_prompt(name).fingerprint(),
    "trained": lambda name: recipe(name).determining(),
    "scales": grades.scale_meanings,
}
TOGETHER = (
    lambda: expand_definitions("Let $G$ be an abelian group."),
    catalogue.collection_table,
    catalogue.collection_groups,
    mini.miniature_revision,
    catalogue.collection_names,
)


def used(kind: str) -> list[str]:
    """Use every entry of a registry, and return what is said of those that cannot be used."""
    try:
        names = list(registry.read_registry(kind))
    except MirblabError as error:
        return [str(error)]
    uses = [partial(BY_NAME[kind], name) for name in names] if kind in BY_NAME else TOGETHER
    said = []
    for use in uses:
        try:
            use()
        except MirblabError as error:
            said.append(str(error))
    return said


def mutated(content: bytes, chance: random.Random) -> bytes:
    """Return a file with one to three things changed: bytes, lines, or a value by one of another kind."""
    for _ in range(chance.randint(1, 3)):
        lines = content.split(b"\n")
        at = chance.randrange(len(lines))
        place = chance.randrange(len(content))
        what = chance.randrange(7)
        if what == 0:
            content = content[:place] + bytes([chance.randrange(256)]) + content[place + 1 :]
        elif what == 1:
            content = content[:place] + bytes(chance.randrange(256) for _ in range(3)) + content[place:]
        elif what == 2:
            content = content[:place]
        elif what == 3:
            content = b"\n".join(lines[:at] + lines[at + 1 :])
        elif what == 4:
            content = b"\n".join([*lines[:at], lines[chance.randrange(len(lines))], *lines[at:]])
        else:
            settings = [number for number, line in enumerate(lines) if b" = " in line]
            if settings:
                at = chance.choice(settings)
                lines[at] = lines[at].split(b" = ")[0] + b" = " + chance.choice(VALUES).encode()
                content = b"\n".join(lines)
        content = content or b"x"
    return content


@pytest.mark.parametrize("kind", KINDS)
def test_a_mutated_registry_is_used_or_refused_by_name(kind: str, own: Callable[[str, bytes], Path]) -> None:
    """No damage to a file of the home registry ends in anything but a MirblabError with its name, or the entry's."""
    shipped, chance = (SHIPPED / f"{kind}.toml").read_bytes(), random.Random(kind)
    n_named = 0
    for number in range(20):
        own(kind, mutated(shipped, chance))
        said = used(kind)
        others = [line for line in said if f"{kind}.toml" not in line]
        assert [line for line in others if not ENTRY.search(line)] == [], number
        n_named += len(others) < len(said)
    assert n_named >= 5


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'[a]\nlabel = "caf\xe9"\n', "line 2: the byte 0xe9 is not UTF-8"),
        (b"\n\na = 3\n", "line 3 is 3, not a table; write [a]"),
        (b'[a]\nkind = "bm25"\nk1 = nan\n', "line 3: a.k1 is nan; write a finite number"),
        (b'[a]\nkind = "bm25"\nb = 1e400\n', "line 3: a.b is inf"),
        (b"[a]\nb = " + b"[" * 3000 + b"]" * 3000, "nested too deeply"),
        (b"[a]\n" + b"b." * 3000 + b"c = 1", "nested too deeply"),
        (b"[a]\nb = " + b"9" * 5000, "not valid TOML"),
        (b"[a\n", "not valid TOML"),
    ],
)
def test_what_cannot_be_read_is_refused_with_file_and_line(
    content: bytes, message: str, own: Callable[[str, bytes], Path]
) -> None:
    """For every kind of registry alike, because one function reads them all; cards and suites too."""
    for kind in KINDS:
        path = own(kind, content)
        with pytest.raises(MirblabError) as caught:
            registry.read_registry(kind)
        assert message in str(caught.value)
        assert str(path) in str(caught.value)
        path.unlink()


def test_a_card_and_a_suite_are_read_by_the_same_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that are not UTF-8 and numbers that are none, in card.toml and in a suite."""
    (tmp_path / "card.toml").write_bytes(b'name = "a"\nrelevant_from = nan\n')
    with pytest.raises(MirblabError, match=r"card.toml, line 2: relevant_from is nan"):
        Card.read(tmp_path)
    (tmp_path / "odd.toml").write_bytes(b'[[notebook]]\nname = "\xff"\n')
    monkeypatch.setattr(suite_files, "suites_folder", lambda: tmp_path)
    with pytest.raises(MirblabError, match=r"odd.toml, line 2: the byte 0xff is not UTF-8"):
        suite_files.read_suite("odd")


def test_a_mark_of_order_before_the_text_does_no_harm(tmp_path: Path) -> None:
    """Some editors put the three bytes of a byte order mark before UTF-8."""
    (tmp_path / "a.toml").write_bytes(b"\xef\xbb\xbfa = 1\r\n")
    assert read_toml(tmp_path / "a.toml") == {"a": 1}


@pytest.mark.parametrize("name", ["a" * 300, "a\0b", "~nobody-of-this-name", "+".join(["bm25"] * 60)])
def test_a_name_that_no_file_can_have_is_unknown_or_works(name: str) -> None:
    """Too long for a file, with a zero byte, or the home of a user who is not there."""
    for ask in (system, encoder, rerank.reranker_settings, catalogue.collection_folder):
        if ask is system and "+" in name:
            assert len(system(name).parts) == 60
            continue
        with pytest.raises(MirblabError, match="no "):
            ask(name)


@pytest.mark.parametrize(
    "entries",
    [
        '[a]\nkind = "fusion"\nof = ["a", "bm25"]\n',
        '[a]\nkind = "rerank"\nfirst = "b"\nreranker = "maxsim"\ndepth = 3\n[b]\nkind = "fusion"\nof = ["bm25", "a"]\n',
        '[a]\nkind = "fusion"\nof = ["bm25+a", "bm25"]\n',
    ],
)
def test_a_system_composed_of_itself_is_refused(entries: str, own: Callable[[str, bytes], Path]) -> None:
    """Directly, in a circle, or within a composed name."""
    own("systems", entries.encode())
    for name in ("a", "a+bm25", "a>maxsim@2>maxsim@3"):
        with pytest.raises(MirblabError, match=r"composed of itself \(.*a of .*\); name other parts"):
            system(name)


def test_a_name_of_a_thousand_systems_is_refused() -> None:
    """Instead of an end of Python's stack."""
    with pytest.raises(MirblabError, match="more than 10 systems within each other"):
        system("bm25" + ">maxsim@2" * 1000)


@pytest.mark.parametrize(
    ("kind", "entry", "message"),
    [
        ("rerankers", "[a]\nmax_length = 'x'\n", "'a' in .*rerankers.toml: max_length is 'x'; write a whole number"),
        ("rerankers", "[a]\nlabel = 'x'\n", "the reranker 'a' in .*: no kind of reranker 'None'"),
        (
            "rerankers",
            "[a]\nkind = 'max-sim'\nencoder = 'minilm'\nmax_lenght = 9\n",
            "no field of the reranker 'a' in .*rerankers.toml called 'max_lenght'; did you mean 'max_length'",
        ),
        ("rerankers", "[a]\nkind = 'max-sim'\n", "the reranker 'a' in .* lacks encoder"),
        ("collections", "[a]\npaper = 3\n", "'a' in .*collections.toml: paper is 3; write text in quotes"),
        ("collections", "[a]\nrestricted = 1\n", "restricted is 1; write true or false"),
        ("systems", "[a]\nkind = 'fusion'\nof = [1, 2]\n", "of.0 is 1; write text in quotes"),
        ("systems", "[a]\nkind = 'bm25'\nlabel = 2\n", "label is 2; write text in quotes"),
        (
            "prompts",
            "[a]\nsystem = ''\nuser = '{statement}'\nretry = ''\nattempts = 1\nparameters = { a = 2020-01-01 }\n",
            "prompt 'a' in .*prompts.toml: its parameters cannot be sent",
        ),
    ],
)
def test_a_field_of_another_type_is_refused_with_file_and_entry(
    kind: str, entry: str, message: str, own: Callable[[str, bytes], Path]
) -> None:
    """Before anything is computed with it."""
    own(kind, entry.encode())
    assert re.search(message, "\n".join(used(kind)))


def test_the_doctor_says_what_is_wrong_with_a_registry(own: Callable[[str, bytes], Path]) -> None:
    """Also with one that is not UTF-8."""
    own("systems", b"\xff")
    assert registries().state == "wrong"
    assert "not UTF-8" in registries().text


def test_the_shipped_files_are_named_shortly() -> None:
    """The package's own files are told by name, not by where Python keeps them."""
    assert registry.entry_file("systems", "bm25") == "systems.toml"


def test_a_missing_label_is_no_name() -> None:
    """It was the text "None", so that this name matched the first entry without a label."""
    assert registry.match_name("None", {"first": {}}) == "None"
    assert registry.match_name("The First", {"first": {"label": "the first"}}) == "first"
