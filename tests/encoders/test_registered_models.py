"""entries, inputs, fit, snapshot: every model of the registry reads, attends and pools as MIRB and MELD ran it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mirblab.core import registry
from mirblab.core.errors import MirblabError
from mirblab.encoders import entry, local
from mirblab.encoders.encoding import Encoder, encoder
from mirblab.encoders.hosted import client
from mirblab.evaluation import published

# Typed from sections 7 and 8 of the reference on MIRB, with the instruction of the Stacks project (QA).
FIND = "Given a math theorem, retrieve its proof."
QUERY, DOCUMENT = "Let $X$ be a ring.", "Every field is a ring."
E5_QUERY = "Instruct: Given a math theorem, retrieve its proof.\nQuery: Let $X$ be a ring."
QWEN3_QUERY = "Instruct: Given a math theorem, retrieve its proof.\nQuery:Let $X$ be a ring."
BGE_QUERY = "Represent this sentence for searching relevant passages: Let $X$ be a ring."
GRIT_QUERY = "<|user|>\nGiven a math theorem, retrieve its proof.\n<|embed|>\nLet $X$ be a ring."
EOT = "<|endoftext|>"
# name: query, document; and as the published code had them, if MIRB ran it
STRINGS = {
    "minilm": (QUERY, DOCUMENT),
    "minilm-pretokens": ("let $X$ be a ring.", "every field is a ring."),
    "minilm-pretokens-plain": ("let X be a ring.", "every field is a ring."),
    "gte-large-en-v1.5": (QUERY, DOCUMENT, QUERY, DOCUMENT),
    "uae-large-v1": (BGE_QUERY, DOCUMENT, BGE_QUERY, DOCUMENT),
    "bge-large-en-v1.5": (BGE_QUERY, DOCUMENT, BGE_QUERY, DOCUMENT),
    "gte-qwen2-1.5b-instruct": (E5_QUERY, DOCUMENT, E5_QUERY + EOT, " Every field is a ring.<|endoftext|>"),
    "gte-qwen2-7b-instruct": (E5_QUERY, DOCUMENT, E5_QUERY + EOT, " Every field is a ring.<|endoftext|>"),
    "e5-mistral-7b-instruct": (E5_QUERY, DOCUMENT, E5_QUERY, "Instruct: \nQuery:  Every field is a ring."),
    "nv-embed-v2": (E5_QUERY, DOCUMENT, E5_QUERY + "</s>", "Every field is a ring.</s>"),
    "sfr-embedding-2_r": (E5_QUERY, DOCUMENT, E5_QUERY, " Every field is a ring."),
    "gritlm-7b": (
        *(GRIT_QUERY, "<|embed|>\nEvery field is a ring."),
        *(GRIT_QUERY, "<|embed|>\n Every field is a ring."),
    ),
    "cohere-embed-english-v3.0": (QUERY, DOCUMENT, QUERY, " Every field is a ring."),
    "text-embedding-3-large": (QUERY, DOCUMENT, QUERY, " Every field is a ring."),
    "voyage-3-large": (QUERY, DOCUMENT, QUERY, " Every field is a ring."),
    "qwen3-embedding-4b": (QWEN3_QUERY, DOCUMENT),
    "qwen3-embedding-8b": (QWEN3_QUERY, DOCUMENT),
    "harrier-oss-v1-27b": (QWEN3_QUERY, DOCUMENT),
    "harrier-oss-v1-0.6b": (QWEN3_QUERY, DOCUMENT),
    "kalm-embedding-gemma3-12b-2511": (
        "Instruct: Given a math theorem, retrieve its proof. \n Query: Let $X$ be a ring.",
        DOCUMENT,
    ),
    "llama-embed-nemotron-8b": (E5_QUERY, DOCUMENT),
    "octen-embedding-8b": (QWEN3_QUERY, " Every field is a ring."),
    "f2llm-v2-14b": (E5_QUERY, DOCUMENT),
    "mathleap-qwen-8b": (QUERY, DOCUMENT),
    "mathleap-octen-8b": (QUERY, DOCUMENT),
    "opensearch-doc-v3-distill": (QUERY, DOCUMENT),
}
CASES = [
    pytest.param(name, "mirb" if number > 1 else "", ("query", "document")[number % 2], string, id=f"{name}-{number}")
    for name, found in STRINGS.items()
    for number, string in enumerate(found)
]
ENTRIES = registry.read_registry("encoders")
HERE = [name for name in STRINGS if "vendor" not in ENTRIES[name] and not ENTRIES[name].get("sparse")]
HOSTED = [name for name in STRINGS if "vendor" in ENTRIES[name]]  # sparse ones: tests/retrieval/test_sparse.py
ENDS = {
    **dict.fromkeys(("e5-mistral-7b-instruct", "sfr-embedding-2_r", "nv-embed-v2", "f2llm-v2-14b"), "</s>"),
    **dict.fromkeys(("gte-qwen2-1.5b-instruct", "gte-qwen2-7b-instruct"), EOT),
    **dict.fromkeys(("qwen3-embedding-4b", "qwen3-embedding-8b", "octen-embedding-8b"), EOT),
    **dict.fromkeys(("mathleap-qwen-8b", "mathleap-octen-8b"), EOT),
}
BERT = (
    "minilm",
    "minilm-pretokens",
    "minilm-pretokens-plain",
    "gte-large-en-v1.5",
    "uae-large-v1",
    "bge-large-en-v1.5",
)


@pytest.fixture(scope="session")
def raw(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return two bare transformers: `bert` with WordPiece, `causal` a Mistral with byte-level BPE and a chat template.

    Weights are random; the causal tokenizer puts <s> before a text and nothing after it.
    """
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import BertConfig, BertModel, BertTokenizer, MistralConfig, MistralForCausalLM
    from transformers import PreTrainedTokenizerFast as Fast

    folder = tmp_path_factory.mktemp("raw")
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    letters = [*"abcdefghijklmnopqrstuvwxyz$.:,"]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    BertTokenizer(vocab={piece: at for at, piece in enumerate(pieces)}).save_pretrained(folder / "bert")
    BertModel(BertConfig(vocab_size=len(pieces), max_position_embeddings=128, **sizes)).save_pretrained(folder / "bert")
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer, bpe.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    special, alphabet = ["<s>", "</s>", EOT], pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=320, special_tokens=special, initial_alphabet=alphabet)
    bpe.train_from_iterator([GRIT_QUERY, BGE_QUERY, E5_QUERY, DOCUMENT], trainer)
    bpe.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    tokenizer = Fast(tokenizer_object=bpe, bos_token="<s>", eos_token="</s>")
    tokenizer.chat_template = "{% for m in messages %}[{{ m['role'] }}] {{ m['content'] }}{% endfor %}"
    tokenizer.save_pretrained(folder / "causal")
    config = MistralConfig(vocab_size=len(tokenizer), num_key_value_heads=1, max_position_embeddings=256, **sizes)
    MistralForCausalLM(config).save_pretrained(folder / "causal")
    return {"bert": folder / "bert", "causal": folder / "causal"}


@pytest.fixture(scope="session")
def saved(raw: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """Return a function of kind and pooling to a sentence-transformers folder (with `modules.json`, not normalised)."""
    made: dict[tuple[str, str], Path] = {}

    def save(kind: str, pooling: str) -> Path:
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.base.modules import Transformer
        from sentence_transformers.sentence_transformer.modules import Pooling

        if (kind, pooling) not in made:
            folder = made[kind, pooling] = tmp_path_factory.mktemp("saved") / f"{kind}-{pooling}"
            SentenceTransformer(modules=[Transformer(str(raw[kind])), Pooling(16, pooling)], device="cpu").save(
                str(folder)
            )
            # as the models on the Hub have it, which were saved before sentence-transformers knew of modalities
            (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 96, "do_lower_case": false}')
        return made[kind, pooling]

    return save


@pytest.fixture
def home(home: Path) -> Path:
    """Give the test a registry and a cache of its own."""
    (home / "registry").mkdir(parents=True)
    return home


def toml(value: Any) -> str:
    """Return a value as TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{name}" = {toml(inner)}' for name, inner in value.items()) + "}"
    return json.dumps(value)


@pytest.fixture
def register(home: Path) -> Callable[..., Path]:
    """Return a function that writes one entry into the test's own registry, and returns that file."""

    def write(name: str, **entry: Any) -> Path:
        path = home / "registry" / "encoders.toml"
        path.write_text(f'["{name}"]\n' + "".join(f"{field} = {toml(value)}\n" for field, value in entry.items()))
        return path

    return write


@pytest.fixture
def tiny(register: Callable[..., Path], saved: Callable[[str, str], Path]) -> Callable[..., Encoder]:
    """Return a function to the registry's encoder *name* with a tiny model in a local folder instead of its own."""

    def make(name: str, compat: str = "", folder: Path | None = None, **change: Any) -> Encoder:
        entry = dict(registry.read_registry("encoders")[name]) | {"dimensions": 16, "dtype": "float32"} | change
        for field in ("package", "sha256", "trust_remote_code", "code_revision"):
            entry.pop(field, None)
        folder = folder or saved("bert" if name in BERT else "causal", entry["pooling"])
        register(name, **entry | {"id": str(folder)})
        return encoder(name, compat)

    return make


class Heard:
    """What reached the tokenizer for the model, and the token ids that reached the model."""

    def __init__(self) -> None:
        self.strings: list[str] = []
        self.ids: list[list[int]] = []


@pytest.fixture
def listen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Encoder], Heard]]:
    """Return a function that records an encoder's tokenizer and model from then on."""
    hooks: list[Any] = []

    def start(one: Encoder) -> Heard:
        heard, tokenizer = Heard(), one._model.tokenizer
        call = type(tokenizer).__call__

        def told(self: Any, text: Any = None, *given: Any, **named: Any) -> Any:
            if named.get("padding") is True:  # not where tokens are only counted
                heard.strings += [text] if isinstance(text, str) else list(text)
            return call(self, text, *given, **named)

        monkeypatch.setattr(type(tokenizer), "__call__", told)

        def seen(_: Any, given: Any) -> None:
            for ids, mask in zip(given[0]["input_ids"], given[0]["attention_mask"], strict=True):
                heard.ids.append(ids[mask.bool()].tolist())

        hooks.append(one._model[0].register_forward_pre_hook(seen))
        return heard

    yield start
    for hook in hooks:
        hook.remove()


def states(folder: Path, string: str, **config: Any) -> np.ndarray:
    """Return the last hidden states of one string by transformers alone, (n_tokens, 16)."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    for field, value in config.items():
        setattr(model.config, field, value)
    with torch.inference_mode():
        ids = torch.tensor([tokenizer(string)["input_ids"]])
        # A mask of its own, of zeros, is how transformers is told that everything may look at everything.
        mask = torch.zeros(1, 1, ids.shape[1], ids.shape[1]) if config else None
        return model(input_ids=ids, attention_mask=mask).last_hidden_state[0].numpy()


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def test_the_templates_cover_the_registry() -> None:
    """Every encoder is checked below, in both modes where it has two."""
    found = {name: entry for name, entry in registry.read_registry("encoders").items() if not entry.get("trained")}
    assert set(STRINGS) == set(found)
    assert {name for name in STRINGS if len(STRINGS[name]) == 4} == {name for name in found if "mirb" in found[name]}


@pytest.mark.parametrize(("name", "compat", "role", "string"), [case for case in CASES if case.values[0] in HERE])
def test_the_tokenizer_gets_the_published_string(
    tiny: Callable[..., Encoder], listen: Callable[..., Heard], name: str, compat: str, role: str, string: str
) -> None:
    """To the character, for each model, role and mode, whatever white space stood around the text."""
    model = tiny(name, compat)
    heard = listen(model)
    model.vectors([{"query": QUERY, "document": f"  {DOCUMENT}\n"}[role]], role, FIND)
    assert heard.strings == [string]
    if name not in BERT:  # byte-level BPE loses nothing, so the ids say what the model saw
        end = ENDS.get(name, "") if not compat or name in ("e5-mistral-7b-instruct", "sfr-embedding-2_r") else ""
        assert model._model.tokenizer.decode(heard.ids[0]) == "<s>" + string + end


@pytest.mark.parametrize(("name", "compat", "role", "string"), [case for case in CASES if case.values[0] in HOSTED])
def test_a_vendor_gets_the_published_string(
    home: Path, hosted: list[Any], name: str, compat: str, role: str, string: str
) -> None:
    """The hosted models too."""
    encoder(name, compat).vectors([{"query": QUERY, "document": DOCUMENT}[role]], role, FIND)
    assert hosted == [(role, [string])]


def test_without_an_instruction_nothing_of_the_template_is_left(home: Path) -> None:
    """No stray prefix on the queries of a collection that has no instruction."""
    plain = {name: encoder(name).strings([QUERY], "query")[0] for name in STRINGS}
    expected = dict.fromkeys(STRINGS, QUERY) | {
        "minilm-pretokens": "let $X$ be a ring.", "minilm-pretokens-plain": "let X be a ring.",
        "gritlm-7b": "<|embed|>\nLet $X$ be a ring.", "uae-large-v1": BGE_QUERY, "bge-large-en-v1.5": BGE_QUERY,
    }  # fmt: skip
    assert plain == expected


def test_minilms_key_is_what_it_was() -> None:
    """Vectors that lie in caches stay valid: the folders' names are those of the third format."""
    minilm = encoder("minilm")
    assert minilm.store("query").digest == "86d7613bccd803d05c7fa43c9e237c7e"
    assert minilm.store("document").digest == "8e81e616fde32e62f0173b2c684b2a68"
    assert sorted(minilm.key) == sorted([*set(entry.LOCAL) - {"id"}, "model"])


def test_the_published_mode_shares_vectors_where_it_changes_nothing(home: Path) -> None:
    """The key differs only where what determines a vector differs."""
    for name in ("gte-large-en-v1.5", "uae-large-v1", "bge-large-en-v1.5"):
        assert encoder(name, "mirb").key == encoder(name).key
    for name in ("e5-mistral-7b-instruct", "sfr-embedding-2_r", "gritlm-7b", "voyage-3-large"):
        one, other = encoder(name), encoder(name, "mirb")
        assert one.space("query", FIND) == other.space("query", FIND)
        assert one.space("document") != other.space("document")
    assert encoder("nv-embed-v2").space("document")["max_length"] == 32768
    assert encoder("nv-embed-v2", "mirb").space("document")["max_length"] == 512


@pytest.mark.parametrize(
    "change",
    [{"eos": ""}, {"attention": "causal"}, {"prompt_pooled": False}, {"lead": {"document": " "}},
     {"suffix": {"document": "."}}, {"code_revision": "1" * 40}, {"pretokens": "pya0"}],
)  # fmt: skip
def test_each_optional_field_gives_another_space(home: Path, change: dict[str, Any]) -> None:
    """What was added later is in the key where it is set."""
    entry = dict(registry.read_registry("encoders")["gte-qwen2-7b-instruct"])
    assert Encoder("x", entry | change).store().path != Encoder("x", entry).store().path


def test_a_suffix_for_queries_leaves_the_documents_alone(home: Path) -> None:
    """Tables by role count for their role."""
    entry = dict(registry.read_registry("encoders")["minilm"])
    one, other = Encoder("x", entry), Encoder("x", entry | {"suffix": {"query": "?"}})
    assert one.space("document") == other.space("document") and one.space("query") != other.space("query")


def test_sizes_and_lengths_are_those_of_table_7() -> None:
    """As printed, for each model that has a row."""
    table = published.paper_cells("mirb", 7).pivot(index="row", columns="column", values="value").drop("BM25")
    found = {entry["label"]: entry for entry in registry.read_registry("encoders").values()}
    assert len(table) == 12
    for label, row in table.iterrows():
        length = str(found[label]["max_length"])
        assert (found[label]["size"], length, length) == (row["Size"], row["Max |Q|"], row["Max |D|"]), label


def test_every_dense_system_has_an_encoder_and_its_printed_name() -> None:
    """One system per encoder, one more per model of MIRB in the published mode."""
    known, systems = registry.read_registry("encoders"), registry.read_registry("systems")
    printed = set(published.paper_table("mirb", 9).index)
    for name, entry in known.items():  # noqa: F402
        assert systems[name]["encoder"] == name and systems[name]["label"] == entry["label"]
        assert ("mirb" in entry) == (entry["label"] in printed) == (f"{name}-mirb" in systems)
        if "mirb" in entry:
            other = systems[f"{name}-mirb"]
            assert systems[name]["paper"] == other["paper"] == entry["label"]
            assert other["encoder"] == name and other["compat"] == "mirb"


@pytest.mark.parametrize("side", ["left", "right"])
def test_last_token_pooling_is_right_with_padding_on_either_side(
    tiny: Callable[..., Encoder], saved: Callable[..., Path], side: str
) -> None:
    """A text has the vector of its last token, alone and beside longer ones."""
    model = tiny("harrier-oss-v1-0.6b", padding=side)
    texts = ["ring", "Let $X$ be a field, and every ring is flat.", "a", "every field"]
    expected = [unit(states(saved("causal", "lasttoken"), text)[-1]) for text in texts]
    many = model.vectors(texts)
    assert model._model.tokenizer.padding_side == side
    np.testing.assert_allclose(many, expected, atol=1e-5)
    for text, vector in zip(texts, many, strict=True):
        shutil.rmtree(model.store().path)
        np.testing.assert_allclose(model.vectors([text])[0], vector, atol=1e-5)


def test_cls_pooling_takes_the_first_token_and_the_vector_is_normalised(
    tiny: Callable[..., Encoder], saved: Callable[..., Path]
) -> None:
    """Also when the model's own folder has no Normalize, since cosine similarity follows."""
    texts = ["a ring", "let x be a flat field"]
    expected = [unit(states(saved("bert", "cls"), text)[0]) for text in texts]
    np.testing.assert_allclose(tiny("bge-large-en-v1.5").vectors(texts), expected, atol=1e-5)


@pytest.mark.parametrize("compat", ["", "mirb"])
def test_gritlm_attends_both_ways_and_pools_the_text_only(
    tiny: Callable[..., Encoder], saved: Callable[..., Path], compat: str
) -> None:
    """The mean over the text's own tokens; the prompt is seen, not counted; alone and beside a longer text."""
    model = tiny("gritlm-7b", compat)
    long = "Every field is a ring, let it be flat."
    found = model.vectors([QUERY, long], "query", FIND)
    folder = saved("causal", "mean")
    n_prompt = entry.count_prompt_tokens(model._model.tokenizer, model.prompt("query", FIND))
    hidden = states(folder, GRIT_QUERY, is_causal=False)
    np.testing.assert_allclose(found[0], unit(hidden[n_prompt:].mean(axis=0)), atol=1e-5)
    assert np.abs(found[0] - unit(hidden.mean(axis=0))).max() > 1e-3
    text = model._model.tokenizer.decode(model._model.tokenizer(GRIT_QUERY)["input_ids"][n_prompt:])
    assert text == QUERY
    shutil.rmtree(model.store("query", FIND).path)
    np.testing.assert_allclose(model.vectors([QUERY], "query", FIND)[0], found[0], atol=1e-5)


def test_the_space_before_a_document_counts_as_text(tiny: Callable[..., Encoder]) -> None:
    """The published code's space is pooled with the document, not left out with the prompt."""
    model = tiny("gritlm-7b", "mirb")
    tokenizer = model._model.tokenizer
    n_prompt = entry.count_prompt_tokens(tokenizer, model.prompt("document"))
    ids = tokenizer(model.strings([DOCUMENT])[0])["input_ids"]
    assert tokenizer.decode(ids[n_prompt:]) == " Every field is a ring."


@pytest.mark.parametrize(("name", "sees"), [("e5-mistral-7b-instruct", False), ("gte-qwen2-7b-instruct", True)])
def test_attention_has_the_registered_direction(tiny: Callable[..., Encoder], name: str, sees: bool) -> None:
    """The first token knows of the last one only where attention is bidirectional, with padding and without."""
    model = tiny(name)
    first = [model.token_vectors([text, *rest])[0][0] for text in ("a b", "a c") for rest in ([], ["a b c d e f"])]
    assert (np.abs(first[0] - first[2]).max() > 1e-4) == sees
    assert (np.abs(first[1] - first[3]).max() > 1e-4) == sees
    np.testing.assert_allclose(first[0], first[1], atol=1e-5)


def test_every_input_ends_in_eos_once_also_when_it_is_cut(
    tiny: Callable[..., Encoder], listen: Callable[..., Heard]
) -> None:
    """The tokenizer of the folder adds none; the published way, in the text, loses it in long texts."""
    texts = ["ring", "ring " * 200]
    model = tiny("gte-qwen2-7b-instruct", max_length=24)
    heard, end = listen(model), model._model.tokenizer.get_vocab()[EOT]
    model.vectors(texts)
    assert sorted(map(len, heard.ids))[1] == 24
    assert all(ids.count(end) == 1 and ids[-1] == end for ids in heard.ids)
    assert model.n_truncated(texts) == 1
    old = tiny("gte-qwen2-7b-instruct", "mirb", max_length=24)
    heard = listen(old)
    old.vectors(texts)
    short, long = sorted(heard.ids, key=len)
    assert short[-1] == end and end not in long and len(long) == 24


def test_a_tokenizer_that_adds_eos_itself_is_left_alone(saved: Callable[..., Path]) -> None:
    """Asking twice gives one; a token that is not there is an error naming the encoder."""
    from tokenizers.processors import TemplateProcessing
    from transformers import AutoTokenizer

    from mirblab.encoders.local import append_end_token

    tokenizer = AutoTokenizer.from_pretrained(saved("causal", "mean"))
    before = tokenizer("a ring")["input_ids"]
    for _ in range(2):
        append_end_token("toy", tokenizer, "auto")
        assert tokenizer("a ring")["input_ids"] == [*before, tokenizer.eos_token_id]
    own = TemplateProcessing(single=f"$A {EOT} </s>", special_tokens=[(EOT, 2), ("</s>", 1)])
    tokenizer.backend_tokenizer.post_processor = own
    append_end_token("toy", tokenizer, "</s>")
    assert tokenizer("a")["input_ids"][-2:] == [2, 1]
    with pytest.raises(MirblabError, match="encoder 'toy'.*no token '<eos>'"):
        append_end_token("toy", tokenizer, "<eos>")


def test_a_bare_transformer_gets_the_entrys_pooling_and_no_chat_template(
    tiny: Callable[..., Encoder], raw: dict[str, Path], listen: Callable[..., Heard]
) -> None:
    """A folder without modules.json has no pooling of its own; its texts are not turned into messages."""
    found = tiny("gritlm-7b", folder=raw["causal"])
    heard = listen(found)
    assert found._model[1].pooling_mode == "mean" and not found._model[1].include_prompt
    assert np.isfinite(found.vectors([DOCUMENT])).all()
    assert heard.strings == ["<|embed|>\nEvery field is a ring."]
    last = tiny("harrier-oss-v1-0.6b", folder=raw["causal"]).vectors([DOCUMENT])
    np.testing.assert_allclose(last[0], unit(states(raw["causal"], DOCUMENT)[-1]), atol=1e-5)


def test_another_pooling_than_the_folders_own_is_refused(
    tiny: Callable[..., Encoder], saved: Callable[..., Path]
) -> None:
    """Both sides are named."""
    with pytest.raises(MirblabError, match="pooling = 'lasttoken' but the model has 'mean'"):
        tiny("e5-mistral-7b-instruct", folder=saved("causal", "mean")).vectors(["a"])


def test_half_precision_without_a_gpu(tiny: Callable[..., Encoder], home: Path) -> None:
    """float16 is refused with the way out; bfloat16 runs, and is near float32."""
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(MirblabError, match=re.escape(str(home / "registry" / "encoders.toml")) + '.*"bfloat16"'):
        tiny("e5-mistral-7b-instruct", dtype="float16").vectors(["ring"])
    half = tiny("e5-mistral-7b-instruct", dtype="bfloat16").vectors(["ring"])
    full = tiny("e5-mistral-7b-instruct").vectors(["ring"])
    assert 0 < np.abs(half - full).max() < 0.1


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the Hub's cache, empty, on a machine without a network."""
    from huggingface_hub import _snapshot_download as download
    from huggingface_hub import constants, file_download

    folder = tmp_path / "hub"
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    for module in (constants, file_download, download):
        if hasattr(module, "HF_HUB_CACHE"):
            monkeypatch.setattr(module, "HF_HUB_CACHE", str(folder))
    return folder


def test_what_is_not_on_this_machine_says_what_to_do(home: Path, hub: Path) -> None:
    """Model, network, command, and the folder as another way; nothing is stored."""
    with pytest.raises(MirblabError) as failure:
        encoder("uae-large-v1").vectors(["a"])
    message = str(failure.value)
    assert (
        "encoder 'uae-large-v1': the model WhereIsAI/UAE-Large-V1 (335M parameters) is not on this machine" in message
    )
    assert "the Hub cannot be reached" in message and "give a local folder" in message
    assert "hf download WhereIsAI/UAE-Large-V1 --revision f4264cd240f4e46a527f9f57a70cda6c2a12d248" in message


def test_the_hubs_cache_is_enough_without_a_network(home: Path, hub: Path, saved: Callable[..., Path]) -> None:
    """What was downloaded once, at the pinned revision, loads offline; other revisions and half downloads do not."""
    entry = dict(registry.read_registry("encoders")["bge-large-en-v1.5"]) | {"dimensions": 16}
    model = Encoder("toy", entry)
    place = hub / "models--BAAI--bge-large-en-v1.5" / "snapshots" / ("0" * 40)
    shutil.copytree(saved("bert", "cls"), place)
    with pytest.raises(MirblabError, match="not on this machine"):
        model.vectors(["ring"])
    there = place.rename(place.with_name(entry["revision"]))
    weights = (there / "model.safetensors").rename(there / "aside")
    with pytest.raises(MirblabError, match="not whole on this machine"):
        model.vectors(["ring"])
    weights.rename(there / "model.safetensors")
    expected = unit(states(there, "ring")[0])
    np.testing.assert_allclose(model.vectors(["ring"])[0], expected, atol=1e-5)


def test_a_model_without_a_known_revision_is_refused(home: Path) -> None:
    """The message says where to look it up and where to write it."""
    for name in ("mathleap-qwen-8b", "mathleap-octen-8b"):
        with pytest.raises(MirblabError) as failure:
            encoder(name).vectors(["a"])
        message = str(failure.value)
        assert (
            f"encoder '{name}' has no revision" in message and "https://huggingface.co/uw-math-ai/MathLeap" in message
        )
        assert str(home / "registry" / "encoders.toml") in message
        assert encoder(name).missing(["a"]) == 1


ENTRY = {
    "id": "toy/one", "revision": "0" * 40, "max_length": 24, "pooling": "mean", "normalise": True, "dtype": "float32",
    "dimensions": 16, "prompts": {"query": "", "document": ""},
}  # fmt: skip
WRONG = [
    ({"poolling": "cls"}, "called 'poolling'.*did you mean 'pooling'"),
    ({"max_length": "512"}, "max_length is '512'; write a whole number"),
    ({"max_length": 0}, "max_length is 0; write a number above 0"),
    ({"dimensions": True}, "dimensions is True; write a whole number"),
    ({"budget": -1.0}, "budget is -1.0; write a number from 0"),
    ({"normalise": 1}, "normalise is 1; write true or false"),
    ({"dtype": "fp16"}, "dtype is 'fp16'; write 'float32', 'bfloat16' or 'float16'"),
    ({"prompts": "query: "}, "prompts is 'query: '; write a table"),
    ({"prompts": {"query": 1}}, "prompts.query is 1; write text in quotes"),
    ({"attention": "both"}, "attention is 'both'; write 'causal' or 'bidirectional'"),
    ({"mirb": {"max_lenght": 3}}, "mirb called 'max_lenght'.*did you mean 'max_length'"),
    ({"5": {"id": "x"}}, "a name with a dot needs quotes"),
    ({"id": "/nowhere/at/all"}, "its id is the folder /nowhere/at/all, which is not there"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_a_wrong_entry_names_its_file_and_field(
    register: Callable[..., Path], change: dict[str, Any], message: str
) -> None:
    """At once, before anything is loaded, and never a traceback of a library."""
    path = register("mine", **ENTRY | change)
    with pytest.raises(MirblabError, match=f"encoder 'mine' in {re.escape(str(path))}.*") as failure:
        encoder("mine")
    assert re.search(message, str(failure.value)), str(failure.value)


def test_an_incomplete_entry_or_none_is_named(register: Callable[..., Path], home: Path) -> None:
    """Every absent field at once; a name without a table too; hosted ones need less."""
    path = register("mine", **{field: ENTRY[field] for field in ("id", "revision")})
    with pytest.raises(MirblabError, match=f"'mine' in {re.escape(str(path))} lacks max_length, pooling, normalise"):
        encoder("mine")
    register("mine", vendor="openai", model="m")
    with pytest.raises(MirblabError, match="lacks max_length, normalise, dimensions, prompts"):
        encoder("mine")
    path.write_text('mine = "toy/one"\n')
    with pytest.raises(MirblabError, match=r"'mine' in .* is 'toy/one', not a table; write \[mine\]"):
        encoder("mine")


def test_a_folder_without_weights_is_named(
    tiny: Callable[..., Encoder], saved: Callable[..., Path], tmp_path: Path
) -> None:
    """Not a library's traceback."""
    copy = shutil.copytree(saved("bert", "cls"), tmp_path / "empty")
    (copy / "model.safetensors").unlink()
    with pytest.raises(MirblabError, match=f"the model in {re.escape(str(copy))} cannot be loaded"):
        tiny("bge-large-en-v1.5", folder=copy).vectors(["a"])


def test_an_unknown_mode_is_refused(home: Path) -> None:
    """MiniLM has none, and a misspelt one is named."""
    with pytest.raises(MirblabError, match="no compat mode of encoder 'minilm' called 'mirb'; found none"):
        encoder("minilm", compat="mirb")
    with pytest.raises(MirblabError, match="did you mean 'mirb'"):
        encoder("nv-embed-v2", compat="mirbb")


def test_code_in_a_folder_runs_only_for_an_entry_that_says_so(
    tiny: Callable[..., Encoder], saved: Callable[..., Path], tmp_path: Path, register: Callable[..., Path]
) -> None:
    """Neither by default, nor without a commit; the marker that it would leave is not there."""
    copy, marker = shutil.copytree(saved("bert", "cls"), tmp_path / "coded"), tmp_path / "ran"
    (copy / "own.py").write_text(f"open({str(marker)!r}, 'w').close()\nclass Own: ...\n")
    modules = json.loads((copy / "modules.json").read_text())
    modules[1]["type"] = "own.Own"
    (copy / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(MirblabError, match="cannot be loaded.*third-party code"):
        tiny("bge-large-en-v1.5", folder=copy).vectors(["a"])
    register("mine", **ENTRY | {"id": str(copy), "revision": "main", "trust_remote_code": True})
    with pytest.raises(MirblabError, match="pin all 40 hex digits"):
        encoder("mine").vectors(["a"])
    assert not marker.exists()


def test_code_from_another_repository_is_taken_at_its_own_commit(
    home: Path, hub: Path, raw: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weights' revision does not pin it, so the entry does; another commit of that code is never run."""
    from transformers import dynamic_module_utils

    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    commits = {"good": "a" * 40, "bad": "b" * 40}
    for what, commit in commits.items():
        code = hub / "models--toy--code" / "snapshots" / commit
        code.mkdir(parents=True)
        (code / "own.py").write_text(
            f"from transformers import BertModel\nopen({str(tmp_path / what)!r}, 'w').close()\n"
            "class Own(BertModel): ...\n"
        )
    (hub / "models--toy--code" / "refs").mkdir()
    (hub / "models--toy--code" / "refs" / "main").write_text(commits["bad"])
    weights = hub / "models--toy--one" / "snapshots" / ("0" * 40)
    shutil.copytree(raw["bert"], weights)
    config = json.loads((weights / "config.json").read_text())
    (weights / "config.json").write_text(json.dumps(config | {"auto_map": {"AutoModel": "toy/code--own.Own"}}))
    model = Encoder("toy", ENTRY | {"trust_remote_code": True, "code_revision": commits["good"]})
    assert type(model._model[0].model).__name__ == "Own"
    assert (tmp_path / "good").exists() and not (tmp_path / "bad").exists()


def test_a_folder_needs_no_revision(register: Callable[..., Path], saved: Callable[..., Path], tmp_path: Path) -> None:
    """A digest of its files is the revision; a name on the Hub needs its commit."""
    folder = shutil.copytree(saved("bert", "cls"), tmp_path / "mine")
    entry = {name: value for name, value in ENTRY.items() if name != "revision"}
    register("mine", **entry | {"id": str(folder)})
    before = encoder("mine").key["revision"]
    (folder / "config.json").write_text((folder / "config.json").read_text() + " ")
    assert before != encoder("mine").key["revision"]
    register("mine", **entry)
    with pytest.raises(MirblabError, match="lacks revision; add what is missing"):
        encoder("mine")


def test_only_a_path_is_a_folder(
    register: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that happens to be called like a model, or the current one, does not stand in for it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy" / "one").mkdir(parents=True)
    register("mine", **ENTRY)
    assert encoder("mine").folder is None and encoder("mine").key["revision"] == "0" * 40
    assert encoder("voyage-3-large").folder is None and "revision" not in encoder("voyage-3-large").key


@pytest.mark.attacks
def test_registered_remote_code_is_pinned() -> None:
    """An entry that runs code names a commit, for the code too where that lies elsewhere."""
    trusted = {
        name: entry for name, entry in registry.read_registry("encoders").items() if entry.get("trust_remote_code")
    }
    assert set(trusted) == {"gte-large-en-v1.5", "nv-embed-v2", "llama-embed-nemotron-8b"}
    assert all(re.fullmatch("[0-9a-f]{40}", entry["revision"]) for entry in trusted.values())
    assert re.fullmatch("[0-9a-f]{40}", trusted["gte-large-en-v1.5"]["code_revision"])


def test_encoders_that_differ_in_prompts_share_one_loaded_model(tiny: Callable[..., Encoder]) -> None:
    """Two modes of a model of billions of parameters are not loaded twice."""
    one = tiny("sfr-embedding-2_r")
    other = encoder("sfr-embedding-2_r", "mirb")
    assert one._model is other._model and one.name != other.name


@pytest.fixture
def hosted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Answer for every vendor, backwards and in twos, with vectors of length 3; return what was asked, call by call."""
    asked: list[Any] = []

    def embed(entry: dict[str, Any], texts: list[str], role: str) -> Iterator[tuple[list[int], np.ndarray]]:
        asked.append((role, list(texts)))
        for start in reversed(range(0, len(texts), 2)):
            places = list(range(start, min(start + 2, len(texts))))
            vectors = np.zeros((len(places), entry["dimensions"]), np.float32)
            vectors[np.arange(len(places)), [len(texts[place]) for place in places]] = 1.0
            yield places, vectors

    monkeypatch.setattr(client, "embed", embed)
    return asked


def test_hosted_vectors_are_stored_in_the_order_of_the_texts(home: Path, hosted: list[Any]) -> None:
    """Whatever order they arrive in, each text asked for once."""
    model = encoder("voyage-3-large")
    texts = ["a" * n for n in (5, 2, 9, 2, 4)]
    found = model.vectors(texts, "query")
    assert found.argmax(axis=1).tolist() == [5, 2, 9, 2, 4] and found.shape == (5, 1024)
    np.testing.assert_array_equal(model.vectors(texts[::-1], "query"), found[::-1])
    assert hosted == [("query", ["a" * 5, "a" * 2, "a" * 9, "a" * 4])]
    assert model.missing(texts) == 4 and model.missing(texts, "query") == 0


def test_a_hosted_encoder_has_no_tokens(home: Path, hosted: list[Any]) -> None:
    """Counting and comparing tokens say why they cannot."""
    model = encoder("text-embedding-3-large")
    for call in (model.n_truncated, model.token_vectors):
        with pytest.raises(
            MirblabError, match="'text-embedding-3-large' runs at openai, which returns one vector per text"
        ):
            call(["a"])
    assert hosted == []


def test_a_vendors_input_type_and_model_are_in_the_key(home: Path) -> None:
    """What the vendor puts before a text determines the vector."""
    cohere = encoder("cohere-embed-english-v3.0")
    assert cohere.space("query")["input_types"] == "search_query" and cohere.space()["vendor"] == "cohere"
    assert cohere.space()["model"] == "embed-english-v3.0" and cohere.space()["dimensions"] == 1024
    other = Encoder("x", cohere.entry | {"truncate": "NONE"})
    assert other.store().path != cohere.store().path


def test_engine_loads_from_what_determines_the_model() -> None:
    """No prompt, label or licence makes a model be loaded again."""
    assert not {"prompts", "lead", "suffix", "label", "licence", "mirb"} & set(local.LOADING)
