"""pretraining: pairs of sentences from collections, from which a language model learns words and their order."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mirblab.core.errors import MirblabError
from mirblab.core.terminal import say
from mirblab.encoders import local
from mirblab.formula.in_text import split_text
from mirblab.formula.ngrams import named_pretokenisation
from mirblab.sources import catalogue
from mirblab.train.lists import evaluated_queries, repeats_of, split_name
from mirblab.train.loss import LossOf, PairPasses
from mirblab.train.pairs import batch_rows
from mirblab.train.recipes import Recipe

if TYPE_CHECKING:
    import torch

    from mirblab.train.validation import CurrentModel, Evaluate

# The first sentence, the second one, and whether the second follows the first in its document.
SentencePair = tuple[str, str, bool]
_PAIRS, _HELD_OUT = 20, 21  # the purposes of random streams, beside those of train.pairs and train.lists
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z(\"“]|$)|\n\s*\n")
# Shares of the chosen tokens that become [MASK] and a random token; the others stay (Devlin et al., NAACL 2019).
_MASKED, _RANDOM = 0.8, 0.1
_NOT_MASKED = -1


@dataclass(frozen=True)
class Sentences:
    """The sentences of each document to learn from, after formulas are rewritten, and those of held-out documents.

    *new_words*: the words of formulas that become tokens of their own.
    """

    documents: list[list[str]]
    held_out: list[list[str]]
    new_words: list[str]

    def __len__(self) -> int:
        return len(self.places)

    @cached_property
    def places(self) -> np.ndarray:
        """Return the document and the place of the first sentence of every pair, (n, 2)."""
        return _places(self.documents)

    def draw(self, recipe: Recipe, step: int) -> list[SentencePair]:
        """Return the pairs of a *step*, from 0, drawn by the seed and the step alone."""
        rng = np.random.default_rng([recipe.seed, _PAIRS, step])
        places = self.places[batch_rows(len(self), recipe.batch, recipe.seed, step)]
        return _draw_pairs(self.documents, places, rng, recipe.next_sentence)

    def fingerprint(self) -> str:
        """Return a hash of all sentences and new words: 32 hexadecimal digits."""
        state = hashlib.blake2b(digest_size=16)
        for sentences in (*self.documents, *self.held_out, self.new_words):
            state.update(f"{len(sentences)}\n".encode())
            for sentence in sentences:
                state.update(sentence.encode("utf-8", "surrogatepass") + b"\0")
        return state.hexdigest()


def gather_sentences(recipe: Recipe, tokenizer: Any) -> Sentences:
    """Return the sentences of the collections of *recipe*, and say how many documents were left out.

    A document that at least nearly repeats (`near`) a query of an evaluation of these collections, or of those in
    `apart`, is left out, and so is one of a single sentence. Raises MirblabError for fewer pairs than one batch.
    """
    if parts := [name for name in recipe.collections if split_name(name)[1]]:
        raise MirblabError(
            f"recipe '{recipe.name}': a language model learns from all documents and from no split; write "
            f"{split_name(parts[0])[0]!r} in place of {parts[0]!r}"
        )
    apart = evaluated_queries([*recipe.collections, *recipe.apart], set())
    rewrite = _rewriter(recipe.pretokens)
    documents, words = list[list[str]](), Counter[str]()
    for name in recipe.collections:
        texts = catalogue.load(name).texts
        [known] = repeats_of(apart, [texts], recipe.near)
        kept = [text for text, is_known in zip(texts, known, strict=True) if not is_known]
        split = [own for own in map(split_sentences, dict.fromkeys(kept)) if len(own) > 1]
        if recipe.new_tokens:
            words.update(_formula_words(split, rewrite))
        documents += [[rewrite(sentence) for sentence in own] for own in split]
        say(
            f"{recipe.name}: {name}: {int(known.sum()):,} of {len(texts):,} documents nearly repeat a query of an "
            f"evaluation and are left out; {len(split):,} have two sentences or more"
        )
    order = np.random.default_rng([recipe.seed, _HELD_OUT]).permutation(len(documents))
    held_out = set(order[: min(recipe.held_out_queries, len(documents) // 2)].tolist())
    learnt = [own for at, own in enumerate(documents) if at not in held_out]
    split_words = [word for word, _ in words.most_common() if len(tokenizer.tokenize(word)) > 1]
    sentences = Sentences(learnt, [documents[at] for at in sorted(held_out)], split_words[: recipe.new_tokens])
    if len(sentences) < recipe.batch:
        raise MirblabError(
            f"recipe '{recipe.name}': the documents of {', '.join(recipe.collections)} have {len(sentences)} pairs of "
            f"sentences, fewer than one batch of {recipe.batch}; give more collections or --set batch=..."
        )
    return sentences


def split_sentences(text: str) -> list[str]:
    r"""Return the sentences of a text; a full stop within a formula ends none, a blank line outside always does.

    >>> split_sentences(r"Let $n = 1. 5$. Then \(x > 0\). It holds, i.e. it is true.")
    ['Let $n = 1. 5$.', 'Then $x > 0$.', 'It holds, i.e. it is true.']
    """
    sentences = [""]
    for place, part in enumerate(split_text(text)):
        if place % 2:
            sentences[-1] += f"${part}$"
            continue
        first, *others = _END.split(part)
        sentences[-1] += first
        sentences += others
    return [sentence.strip() for sentence in sentences if sentence.strip()]


def held_out_sentences(recipe: Recipe, material: Sentences) -> Evaluate | None:
    """Return a function that measures the model on the held-out documents; None without one.

    Its measures: the perplexity of masked tokens (from 1, lower is better), the share of them that the model would
    write, and the share of pairs where it says rightly whether the second sentence is the next one.
    """
    if not material.held_out:
        return None
    rng = np.random.default_rng([recipe.seed, _HELD_OUT, 1])
    pairs = _draw_pairs(material.held_out, _places(material.held_out), rng, recipe.next_sentence)

    def measure(model: CurrentModel, step: int) -> dict[str, float]:
        import torch

        torch.manual_seed(recipe.seed)  # the same tokens are masked at every step
        losses, masked, right, _, right_next = model.rows(pairs).astype(np.float64).sum(axis=0)
        measures = {"perplexity": float(np.exp(losses / masked)), "masked right": float(right / masked)}
        return measures | ({"next right": float(right_next / len(pairs))} if recipe.next_sentence else {})

    return measure


def add_language_heads(model: Any, recipe: Recipe, new_words: Sequence[str]) -> None:
    """Give *model*, in place, tokens for *new_words* and the layers that only pretraining needs, as its last module.

    A new token begins with the mean of the embeddings of the pieces that it replaces. `remove_language_heads` takes
    the layers away; the tokens stay.
    """
    import torch
    from tokenizers import AddedToken

    transformer = model[0]
    if getattr(transformer.tokenizer, "mask_token_id", None) is None:
        raise MirblabError(f"recipe '{recipe.name}': the tokenizer of '{recipe.base}' has no token for what is masked")
    embeddings = transformer.model.get_input_embeddings().weight.detach()
    pieces = [transformer.tokenizer(word, add_special_tokens=False)["input_ids"] for word in new_words]
    begin = [embeddings[ids].mean(dim=0) for ids in pieces]
    transformer.tokenizer.add_tokens([AddedToken(word, normalized=False, single_word=True) for word in new_words])
    transformer.model.resize_token_embeddings(len(transformer.tokenizer), mean_resizing=False)
    ids = transformer.tokenizer.convert_tokens_to_ids(list(new_words))
    with torch.no_grad(), torch.random.fork_rng():
        for at, vector in zip(ids, begin, strict=True):
            transformer.model.get_input_embeddings().weight[at] = vector
        torch.manual_seed(recipe.seed)
        heads = _language_heads(transformer.get_embedding_dimension(), len(transformer.tokenizer))
    model.append(heads.to(model.device))


def remove_language_heads(model: Any) -> None:
    """Take away, in place, what `add_language_heads` appended."""
    del model[len(model) - 1]


def _language_heads(width: int, n_tokens: int) -> Any:
    """Return BERT's layers: `words` gives vectors to compare with embeddings, `next` two logits."""
    from torch import nn, zeros

    heads = nn.Module()
    heads.words = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width, eps=1e-12))
    heads.bias = nn.Parameter(zeros(n_tokens))
    heads.next = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 2))
    return heads


@dataclass(frozen=True)
class MaskedPasses(PairPasses):
    """Runs pairs of sentences with masked tokens; a pair's row has five numbers, (n, 5).

    They are the sum of the losses of its masked tokens, how many these are and how many are right, the loss of the next
    sentence, and whether it is right.
    """

    mask_share: float = 0.15

    def _run(self, strings: Sequence[Any], batch: Sequence[int]) -> torch.Tensor:
        import torch
        from torch.nn.functional import cross_entropy

        pairs, device, heads = [strings[position] for position in batch], self.model.device, self.model[-1]
        features = {
            name: value.to(device) for name, value in self.tokenised(pairs, padding=True, return_tensors="pt").items()
        }
        targets = self._choose(features["input_ids"])
        features["input_ids"] = self._mask(features["input_ids"], targets)
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=self.precision != "float32"):
            hidden = self.model[0](features)[local.TOKENS]
            chosen = targets != _NOT_MASKED
            words = heads.words(hidden[chosen]) @ self.model[0].model.get_input_embeddings().weight.T + heads.bias
            follows = heads.next(hidden[:, 0]).float()
        right, is_other = targets[chosen], torch.tensor([not pair[2] for pair in pairs], device=device).long()
        losses, is_right = cross_entropy(words.float(), right, reduction="none"), words.argmax(-1) == right
        each = torch.stack([losses, torch.ones_like(losses), is_right], dim=1)
        of_pairs = torch.zeros(len(pairs), 3, device=device).index_add(0, chosen.nonzero()[:, 0], each.float())
        of_next = torch.stack([cross_entropy(follows, is_other, reduction="none"), follows.argmax(-1) == is_other], 1)
        return torch.cat([of_pairs, of_next], dim=1)

    def _choose(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the ids of the tokens that are chosen at random, of each text at least one, else `_NOT_MASKED`."""
        import torch

        special = torch.tensor(self.model.tokenizer.all_special_ids, device=ids.device)
        drawn = torch.rand(ids.shape).to(ids.device).masked_fill(torch.isin(ids, special), 1.0)
        chosen = (drawn < self.mask_share) | ((drawn == drawn.amin(dim=1, keepdim=True)) & (drawn < 1))
        return torch.where(chosen, ids, _NOT_MASKED)

    def _mask(self, ids: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        import torch

        draws, others = torch.rand(ids.shape).to(ids.device), torch.randint(len(self.model.tokenizer), ids.shape)
        chosen, tokenizer = targets != _NOT_MASKED, self.model.tokenizer
        ids = torch.where(chosen & (draws < _MASKED), tokenizer.mask_token_id, ids)
        return torch.where(chosen & (draws >= 1 - _RANDOM), others.to(ids.device), ids)


def language_loss(recipe: Recipe) -> LossOf:
    """Return the loss of a step from the rows of its pairs: the mean over masked tokens, and that of the next sentence.

    Devlin et al. (NAACL 2019).
    """

    def loss_of(rows: torch.Tensor) -> torch.Tensor:
        of_words = rows[:, 0].sum() / rows[:, 1].sum().clamp(min=1)
        return of_words + rows[:, 3].mean() if recipe.next_sentence else of_words

    return loss_of


def _rewriter(pretokens: str) -> Callable[[str], str]:
    """Return what rewrites a sentence as the encoder rewrites its text: a short one is no formula without dollars."""
    if not pretokens:
        return str
    whole = named_pretokenisation(pretokens)
    return lambda sentence: whole(sentence) if "$" in sentence else sentence.lower()


def _places(documents: Sequence[Sequence[str]]) -> np.ndarray:
    return np.array([(at, place) for at, own in enumerate(documents) for place in range(len(own) - 1)])


def _draw_pairs(
    documents: Sequence[Sequence[str]], places: np.ndarray, rng: np.random.Generator, next_sentence: bool
) -> list[SentencePair]:
    """Return a pair for each of *places*; with *next_sentence* half of the second sentences are of other documents."""
    pairs = list[SentencePair]()
    for at, place in places:
        is_next = not next_sentence or len(documents) < 2 or bool(rng.random() < 0.5)
        second = documents[at][place + 1]
        if not is_next:
            other = documents[int(at + rng.integers(1, len(documents))) % len(documents)]
            second = other[int(rng.integers(len(other)))]
        pairs.append((documents[at][place], second, is_next))
    return pairs


def _formula_words(documents: Sequence[Sequence[str]], rewrite: Any) -> Counter[str]:
    """Return how often each word of a formula occurs, as *rewrite* makes it."""
    counts = Counter[str]()
    for sentences in documents:
        for sentence in sentences:
            for formula in split_text(sentence)[1::2] if "$" in sentence else ():
                words = rewrite(f"${formula}$").split()
                counts.update(word for word in words if "$" not in word.strip("$"))
    return counts
