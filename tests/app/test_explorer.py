"""The explorer answers as the systems do, says what matched, and survives whatever is typed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from attacks import ATTACKS
from lxml import html

from mirblab.analysis.searching import highlights
from mirblab.app.explorer import explore, panes, widget
from mirblab.app.explorer.model import Answer, Column, Hit, Model
from mirblab.core.errors import MirblabError
from mirblab.evaluation.measures import evaluate
from mirblab.retrieval.bm25 import explain
from mirblab.retrieval.systems import system
from mirblab.sources.catalogue import load

FREE = r"a prime number $p$ that divides $a^2 + b^2$"


@pytest.fixture(scope="module")
def qa():
    return load("mini-qa")


@pytest.fixture(scope="module")
def model(qa) -> Model:
    return Model(qa, ["bm25", "structure", "ngram", "bm25+structure"])


@pytest.fixture
def explorer(qa):
    return explore(qa, ["bm25", "prose"], depth=5)


def submit(explorer) -> None:
    explorer.controls.query._handle_custom_msg({"event": "submit"}, [])


@pytest.mark.parametrize("name", ["mini-qa", "mini-formula", "mini-wfb", "mini-hol"])
def test_a_query_of_the_collection_gets_the_run_of_each_system(name):
    """Live search returns what the stored run has, also where candidates exclude documents."""
    collection = load(name)
    names = ["bm25", "structure", "bm25+structure", "bm25-mirb"]
    model = Model(collection, names)
    for query_id in collection.query_ids[[0, 7, -1]]:
        answer = model.ask("", query_id)
        assert [column.name for column in answer.columns] == names
        for column in answer.columns:
            run = system(column.name).search(collection, 10)
            own = run[(run.query_id == query_id) & (run["rank"] <= 10)]
            assert [hit.doc_id for hit in column.hits] == own.doc_id.tolist()
            assert [hit.score for hit in column.hits] == pytest.approx(own.score.tolist(), rel=1e-6)


def test_free_text_may_find_every_document_and_has_no_judgements(qa, model):
    """The text of a query, typed, is that query; any other text is free."""
    free = model.ask(FREE)
    assert free.query_id == "" and all(hit.relevance is None for column in free.columns for hit in column.hits)
    assert all(len(column.hits) == 10 for column in free.columns)
    typed = model.ask("  " + qa.query_texts[3].replace(" ", "\n", 1))
    assert typed.query_id == qa.query_ids[3]
    assert any(hit.is_relevant for hit in typed.columns[0].hits)


def test_relevance_is_as_judged(qa, model):
    """Relevant, judged not relevant and unjudged, from the card's level on."""
    answer = model.ask("", qa.query_ids[0])
    judged = qa.qrels[qa.qrels.query_id == answer.query_id].set_index("doc_id").relevance
    for hit in answer.columns[0].hits:
        assert hit.relevance == judged.get(hit.doc_id)
        assert hit.is_relevant == (hit.relevance is not None and hit.relevance >= qa.card.relevant_from)
    assert answer.n_relevant == int((judged >= qa.card.relevant_from).sum())


def test_each_document_says_where_it_stands_elsewhere(qa):
    """Its rank in every other list, 0 beyond the first hundred."""
    names = ["bm25", "structure", "ngram"]
    columns = {column.name: column.hits for column in Model(qa, names, depth=150).ask(FREE).columns}
    for name, hits in columns.items():
        for other in {*names} - {name}:
            ranks = {hit.doc_id: hit.rank for hit in columns[other][:100]}
            found = [hit.elsewhere[other] for hit in hits]
            assert found == [ranks.get(hit.doc_id, 0) for hit in hits] and 0 < found.count(0) < len(found)
        assert all(set(hit.elsewhere) == {*names} - {name} for hit in hits)
    assert "2 in minilm" in panes.lists(_answer(hit={"elsewhere": {"minilm": 2}}))
    assert "not in minilm’s first 100" in panes.lists(_answer(hit={"elsewhere": {"minilm": 0}}))


def test_terms_are_marked_by_what_they_add(qa, model):
    """The term that adds most is marked most; a word that is not in the query is not marked."""
    hit = model.ask("compact subset of the ring").columns[0].hits[0]
    settings = {key: value for key, value in system("bm25").settings.items() if key not in ("kind", "label")}
    gains = explain(qa, "compact subset of the ring", hit.doc_id, **settings).set_index("term").contribution
    words = {hit.text[start:end].lower(): strength for start, end, strength in hit.marks}
    assert max(words, key=words.get).startswith(gains.idxmax()[:4])
    assert all(any(word.startswith(term[:3]) for term in gains.index) for word in words)


def test_subformulas_are_marked(model):
    """What the query has word for word wholly, else the symbols that agree."""
    text, queries = r"With $a^2+b^2$ or $x^2+y$ and $z$", ["a^2+b^2"]
    index = model._engine("structure").inner.ready.index
    pair = highlights.read_formula("a^2+b^2", index), "x^2+y"
    found = {text[start:end]: share for start, end, share in highlights.formulas(text, queries, pair, index)}
    assert found["a^2+b^2"] == 1.0 and 0 < found["2"] < 1 and found["+"] > 0 and "z" not in found
    marked = [hit for hit in model.ask(r"$a^2 + b^2 = c^2$").columns[1].hits if hit.marks]
    assert len(marked) > 5


def test_runs_of_symbols_are_marked_in_formulas_only():
    """The n-grams of `ngram` count for each of their symbols."""
    marks = highlights.terms("x then $x+y$", {"x": 1.0, "x plus": 2.0}, "latex-ngrams")
    assert [start for start, _, _ in marks] == [8, 9]


def test_the_order_of_differences_is_that_of_the_values(qa, model):
    """The largest absolute difference first; both values are those of `evaluate`."""
    table = model.differences("bm25", "structure", "RR")
    gaps = table.difference.abs().to_numpy()
    assert (gaps[:-1] >= gaps[1:]).all() and len(table) == len(qa.queries)
    values = evaluate(system("structure").search(qa), qa, "RR").set_index("query_id").value
    assert table.other.tolist() == values[table.query_id].tolist()


@pytest.mark.parametrize("systems", [[], ["bm25"] * 2, ["bm25", "prose", "ngram", "chargrams", "structure"]])
def test_another_number_of_systems_is_refused(qa, systems):
    """One to four, each once."""
    with pytest.raises(MirblabError, match="one to 4 different systems"):
        explore(qa, systems)


def test_what_cannot_be_searched_live_says_so(qa):
    """Cross-validated weights belong to the collection's queries; the other system answers."""
    model = Model(qa, ["structure+bm25", "bm25"])
    learnt, words = model.ask(FREE).columns
    assert "its weights are chosen by the collection's judged queries" in learnt.problem and len(words.hits) == 10
    assert "Problem:" in panes.lists(model.ask(FREE))
    assert len(model.ask("", qa.query_ids[0]).columns[0].hits) == 10
    with pytest.raises(MirblabError, match="did you mean 'bm25'"):
        explore(qa, ["bm26"])


def test_a_system_that_fails_keeps_no_other_from_answering(qa, monkeypatch):
    """Its column has the sentence."""
    model = Model(qa, ["bm25", "structure"])
    monkeypatch.setattr(model._engine("structure"), "search", lambda asked, depth: 1 / 0)
    first, second = model.ask(FREE).columns
    assert len(first.hits) == 10 and second.problem.startswith("ZeroDivisionError")


def test_typing_shows_the_query_and_enter_answers_it(explorer, monkeypatch):
    """The preview follows each key, also half-typed LaTeX; the lists wait for Enter."""
    before = explorer.controls.lists.value
    explorer.controls.query.value = r"half of $\frac{1}{$"
    assert "<math" in explorer.controls.preview.value and explorer.controls.lists.value == before
    monkeypatch.setattr(widget, "_LATE", 3600.0)
    submit(explorer)
    assert explorer.controls.lists.value != before and explorer.answer.text == r"half of $\frac{1}{$"
    explorer.controls.query.value = "what was typed just before Enter may come after it"
    assert explorer.answer.text.startswith("what was typed")
    monkeypatch.setattr(widget, "_LATE", 0.0)
    explorer.controls.query.value = "what is typed later waits for Enter"
    assert explorer.answer.text.startswith("what was typed")


@pytest.mark.parametrize("text", ["", "   \t ", "ab " * 3334, r"\frac{", "$", "𝔸 ünï → ∑", "\u202eabc", "​"])
def test_whatever_is_typed_is_fine(explorer, text):
    """An answer or a sentence; the widget goes on."""
    explorer.controls.query.value = text
    explorer.search()
    said = explorer.controls.status.value
    assert "Answered in" in said or "nothing to search for" in said
    explorer.choose(explorer._queries[0][1])
    assert "Answered in" in explorer.controls.status.value


def test_an_error_in_a_handler_is_a_sentence(explorer, monkeypatch):
    """And the next search works."""
    with monkeypatch.context() as patch:
        patch.setattr(explorer.model, "ask", lambda text, query_id: [][0])
        explorer.controls.search.click()
        assert "IndexError" in explorer.controls.status.value and "goes on" in explorer.controls.status.value
    explorer.controls.query.value = "ring"
    explorer.controls.search.click()
    assert "Answered in" in explorer.controls.status.value


def test_words_narrow_the_list_and_a_choice_answers(qa, explorer):
    """The list offers the queries that have all words, and changes nothing before one is chosen."""
    before = explorer.answer
    explorer.controls.find.value = "PRIME order"
    offered = [query_id for _, query_id in explorer.controls.choose.options]
    assert explorer.answer is before and 0 < len(offered) < len(qa.queries)
    assert all("prime" in f"{query_id} {qa.query(query_id)}".lower() for query_id in offered)
    explorer.controls.choose.value = offered[-1]
    assert explorer.answer.query_id == offered[-1] and qa.query(offered[-1])[:20] in explorer.controls.query.value
    explorer.controls.find._handle_custom_msg({"event": "submit"}, [])
    assert explorer.answer.query_id == offered[0]
    explorer.controls.find._handle_custom_msg({"event": "submit"}, [])
    assert explorer.answer.query_id == offered[1]
    explorer.controls.find.value = ""


def test_buttons_step_through_the_differences(explorer):
    """Forward and backward, never beyond the ends; another choice begins anew; the same system twice is refused."""
    order = explorer.model.differences("bm25", "prose", "RR")
    explorer.controls.next.click()
    assert explorer.answer.query_id == order.query_id[0] and "Query 1 of 204" in explorer.controls.difference.value
    explorer.controls.next.click()
    assert explorer.answer.query_id == order.query_id[1] and f"{order.one[1]:.3f}" in explorer.controls.difference.value
    explorer.controls.previous.click()
    explorer.controls.previous.click()
    assert explorer.answer.query_id == order.query_id[0]
    explorer.controls.measure.value = "nDCG@10"
    explorer.controls.next.click()
    assert explorer.answer.query_id == explorer.model.differences("bm25", "prose", "nDCG@10").query_id[0]
    explorer.controls.second.value = "bm25"
    explorer.controls.next.click()
    assert "choose two systems" in explorer.controls.status.value
    explorer.controls.second.value = "prose"


def test_it_shows_itself_without_widgets(explorer):
    """As text and as HTML, both with what was found."""
    bundle = explorer._repr_mimebundle_()
    first = explorer.answer.columns[0].hits[0].doc_id
    assert {"text/plain", "text/html", "application/vnd.jupyter.widget-view+json"} <= set(bundle)
    assert first in bundle["text/plain"] and first in bundle["text/html"] and "<script" not in bundle["text/html"]


def test_the_lists_are_for_screen_readers_and_not_of_colour_alone():
    """Sections with headings, ordered lists, and words for what was judged."""
    page = html.fragment_fromstring(panes.lists(_answer(query_id="q", hit={"relevance": 0})), create_parent="div")
    assert page.find(".//section").get("aria-label") == "BM25" and page.findtext(".//h3") == "BM25"
    assert page.find(".//ol/li") is not None and "✗ not relevant (0)" in page.text_content()
    shown = panes.lists(_answer(query_id="q", hit={"relevance": 2, "is_relevant": True}))
    assert "✓ relevant (2)" in shown and "? unjudged" in panes.lists(_answer(query_id="q"))


def test_a_match_far_down_is_shown():
    """The text then begins a little before the strongest mark, outside of formulas."""
    text = "word " * 200 + "then $a + b$ and the ring is here"
    at = text.index("ring")
    shown, marks, is_later = panes.window(text, [(at, at + 4, 1.0)])
    assert is_later and shown.strip().startswith(("word", "and", "then")) and shown[slice(*marks[0][:2])] == "ring"
    assert panes.window(text, [(0, 4, 0.1), (at, at + 4, 1.0)])[0] == text


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.attacks
def test_an_attack_is_text_in_every_pane(attack):
    """In the query, an id, a document, a label and an error; every element and attribute is ours."""
    answer = _answer(text=attack, query_id=attack, hit={"doc_id": attack, "text": attack, "marks": [(2, 9, 1.0)]})
    answer = replace(answer, columns=[replace(answer.columns[0], label=attack, name=attack, marked=attack)])
    failed = _answer(text=attack)
    failed = replace(failed, columns=[replace(failed.columns[0], problem=attack, hits=[])])
    for shown in (panes.static(answer), panes.lists(failed), panes.status(attack, True), panes.preview(attack)):
        shown.encode()
        page = html.fragment_fromstring(shown, create_parent="div")
        assert not page.xpath("//script|//img|//svg|//iframe|//object|//embed|//link|//meta|//base|//form|//a|//input")
        assert not [
            name for element in page.iter() for name in element.attrib if name[:2] == "on" or name in ("href", "src")
        ]
        assert len(page.findall(".//style")) == (1 if shown.startswith("<style") else 0)


def _answer(text: str = "x", query_id: str = "", hit: dict | None = None) -> Answer:
    usual = {"rank": 1, "doc_id": "d", "text": "A ring $x$", "score": 1.0, "relevance": None, "is_relevant": False}
    hits = [Hit(**usual | {"marks": [], "elsewhere": {}} | (hit or {}))]
    return Answer(text, query_id, 1, [Column("bm25", "BM25", hits)])
