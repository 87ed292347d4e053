"""Ratings from two towers: what is known of a user and of a film become vectors; their cosine is
the rating. The tables lie on the pservers, any int64 is an id.

Slots, as `make_data.py` writes them: `user`, `gender`, `age`, `job`, `film` (1 id each), `genres`
(any number of ids), `rating` (1 float).
"""

from __future__ import annotations

from collections.abc import Sequence

import psrt
from psrt import layers
from psrt.graph.program import Var

USER, FILM = ("user", "gender", "age", "job"), ("film",)


def build(
    embedding: int = 16, width: int = 32, learning_rate: float = 0.02, scale: float = 2.0
) -> psrt.Model:
    """`scale` is what cosines from −1 to 1 are stretched to, around a rating of 3."""
    ids = {name: layers.data(name, shape=(1,), dtype="int64") for name in (*USER, *FILM)}
    genres = layers.data("genres", shape=(1,), dtype="int64", ragged=True)
    rating = layers.data("rating", shape=(1,))

    person = tower([ids[name] for name in USER], embedding, width)
    film = tower([*(ids[name] for name in FILM), genres], embedding, width)
    predicted = layers.scale(layers.cos_sim(person, film), scale=scale, bias=3.0)

    return psrt.Model(
        loss=layers.mean(layers.square_error_cost(predicted, rating)),
        metrics={"rmse": layers.rmse(predicted, rating)},
        optimizer=psrt.optimizer.Adam(learning_rate=learning_rate),
    )


def tower(features: Sequence[Var], embedding: int, width: int) -> Var:
    """(rows, width) from a row of each feature, each from a table of its own; several add up."""
    rows = [layers.slot_embeddings([feature], (10_000, embedding)) for feature in features]
    layer = layers.concat(rows, axis=1)
    return layers.fc(layers.fc(layer, 2 * width, act="relu"), width)
