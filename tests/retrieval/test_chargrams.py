"""Runs of characters: what counts as one, where they begin and end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mirblab.data.collection import load_folder
from mirblab.retrieval import bm25, tokenizers
from mirblab.retrieval.tokenizers import character_ngrams


def test_runs_reach_over_blanks_unless_told_otherwise():
    """A blank stands before and after the text, or each word."""
    assert character_ngrams("ab cd", 3) == [" ab", "ab ", "b c", " cd", "cd "]
    assert character_ngrams("ab cd", 3, across=False) == [" ab", "ab ", " cd", "cd "]
    assert character_ngrams("x") == [" x "] and character_ngrams(" $ $ ") == [] == character_ngrams("")


def test_signs_of_mathematics_stay_and_spellings_of_a_blank_are_one():
    """Case and compatible characters are folded; dollars separate."""
    assert character_ngrams(r"\frac1", 6) == [r" \frac", r"\frac1", "frac1 "]
    assert character_ngrams("Ring\n$R$") == character_ngrams("ring r") == character_ngrams("ＲＩＮＧ\u00a0$ ℝ$")


@given(st.text(alphabet="ab $\n∑", max_size=30), st.integers(1, 6))
def test_as_many_runs_as_places(text: str, n: int):
    """Each of n characters, but for a text that is shorter; the first ones spell it again."""
    words = text.replace("$", " ").split()
    found = character_ngrams(text, n)
    padded = f" {' '.join(words)} "
    assert len(found) == (max(1, len(padded) - n + 1) if words else 0)
    assert not words or "".join(run[0] for run in found) + found[-1][1:] == padded


def test_it_is_a_tokenizer_and_finds_what_words_do_not(make_folder):
    """Stems and parts of names."""
    assert tokenizers.tokenizer("chargrams")(["Let x"]) == [character_ngrams("Let x")]
    docs = [{"_id": "d1", "text": "open maps"}, {"_id": "d2", "text": "commutativity of rings"}]
    c = load_folder(make_folder(docs, [{"_id": "q1", "text": "commuting"}], "q1\td2\t1\n"))
    assert bm25.search(c, depth=2, tokenizer="chargrams").doc_id.astype(str).tolist()[0] == "d2"
    assert not len(bm25.search(c, depth=2, tokenizer="words"))
