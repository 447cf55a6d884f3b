"""late_match: which tokens of a document answer which tokens of a query."""

from __future__ import annotations

import pandas as pd

from mirblab import encode
from mirblab.errors import MirblabError
from mirblab.late import max_sim


def matches(query: str, document: str, encoder: str = "minilm", instruction: str = "") -> pd.DataFrame:
    """Return the cosine of each token of the *query* (rows) with each of the *document* (columns), −1 to 1.

    Index and columns are the tokens as the encoder's tokenizer writes them, repeated ones included; `attrs["score"]`
    is the MaxSim: the mean of the rows' largest. Raises MirblabError for a text without tokens.

    >>> table = matches("A ring", "Every field is a ring")
    >>> table.index.tolist(), table.idxmax(axis=1).tolist()
    (['a', 'ring'], ['a', 'ring'])
    """
    model, sides = encode.encoder(encoder), {}
    for role, text in (("query", query), ("document", document)):
        vectors, names = (make([text], role, instruction)[0] for make in (model.token_vectors, model.tokens))
        if not len(vectors):
            raise MirblabError(f"the {role} {text!r:.40} has no tokens, so nothing matches")
        sides[role] = (vectors, names)
    (asked, rows), (held, columns) = sides["query"], sides["document"]
    table = pd.DataFrame(asked @ held.T, index=pd.Index(rows, name="query"), columns=pd.Index(columns, name="document"))
    table.attrs["score"] = max_sim(asked, held)
    return table
