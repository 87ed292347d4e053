"""`psrt.fit` and `LocalExecutor`: here and on a cluster, with a distributed table."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import psrt
from psrt import layers
from psrt.core.errors import ConfigError, DataError, ProgramError
from psrt.graph.model import Model
from psrt.trainer.fitting import EpochLosses, Fitted
from tests.support.live_pservers import live_pservers

TABLE = "slot_embeddings_0.w_0"


def model_of() -> Model:
    with psrt.program():
        ids = layers.data("ids", shape=(1,), dtype="int64")
        x = layers.data("x", shape=(2,))
        click = layers.data("click", shape=(1,))
        pooled = layers.slot_embeddings([ids], (1_000_000, 4))
        logit = layers.fc(layers.concat([pooled, x], axis=1), 1)
        loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(logit, click))
        return psrt.Model(loss, layers.sigmoid(logit), click, psrt.optimizer.Adagrad(0.05))


def clicks(rows: int, seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    ids = random.integers(0, 40, (rows, 1)) * 10**12
    x = random.normal(size=(rows, 2)).astype(np.float32)
    wanted = (ids // 10**12 % 2 == 0) ^ (x[:, :1] > 1.5)
    return {"ids": ids, "x": x, "click": wanted.astype(np.float32)}


TRAIN, VALID = clicks(1500, 1), clicks(400, 2)


def silent(line: str) -> None:
    pass


def test_a_fit_here_learns_validates_predicts_and_saves(tmp_path: Path) -> None:
    lines: list[str] = []

    fitted = psrt.fit(model_of(), TRAIN, VALID, epochs=3, batch_size=50, say=lines.append)

    first, *_, last = (epoch.valid for epoch in fitted.history)
    assert first is not None
    assert last is not None
    assert last.loss.value() < first.loss.value()
    assert last.auc.value() > 0.9
    assert last.examples == 400
    assert [line[:7] for line in lines] == ["epoch 1", "epoch 2", "epoch 3"]
    scores = fitted.predict(VALID)
    fitted.save(tmp_path / "model")
    loaded = psrt.load_inference_model(tmp_path / "model")
    (again,) = loaded.run({name: VALID[name] for name in ("ids", "x")})
    np.testing.assert_allclose(again, scores, rtol=1e-6)


def test_a_distributed_table_is_read_by_ids_never_whole() -> None:
    fitted = psrt.fit(model_of(), TRAIN, batch_size=50, say=silent)

    rows = fitted.pull_rows({TABLE: np.array([10**12, -7])})

    assert rows[TABLE].shape == (2, 4)
    with pytest.raises(ProgramError, match="has a row for any int64") as refused:
        fitted.parameter(TABLE)
    assert "pull_rows" in refused.value.hint
    assert fitted.parameter("fc_0.w_0").shape == (6, 1)


def test_a_loaded_model_gives_rows_by_ids_never_a_whole_distributed_table(tmp_path: Path) -> None:
    psrt.fit(model_of(), TRAIN, batch_size=50, save=str(tmp_path / "model"), say=silent)
    loaded = psrt.load_inference_model(tmp_path / "model")

    with pytest.raises(ProgramError, match="has a row for any int64"):
        loaded.parameter(TABLE)
    assert loaded.pull_rows({TABLE: np.array([3])})[TABLE].shape == (1, 4)


def test_a_fit_is_the_same_training_as_a_loop_of_runs() -> None:
    model = model_of()
    fitted = psrt.fit(model, TRAIN, batch_size=50, say=silent)
    with psrt.LocalExecutor(model.program) as executor:
        for start in range(0, 1500, 50):
            executor.run({name: each[start : start + 50] for name, each in TRAIN.items()})

        np.testing.assert_array_equal(executor.scope["fc_0.w_0"], fitted.parameter("fc_0.w_0"))


def test_trainers_of_a_cluster_fit_one_model(tmp_path: Path) -> None:
    with live_pservers(2) as pservers:
        endpoints = [each.endpoint for each in pservers]

        def one(trainer: int) -> Fitted:
            half = {name: each[trainer::2] for name, each in TRAIN.items()}
            return psrt.fit(
                model_of(),
                half,
                batch_size=25,
                cluster=endpoints,
                trainers=2,
                trainer_id=trainer,
                say=silent,
            )

        with ThreadPoolExecutor(2) as trainers:
            first, second = trainers.map(one, range(2))

    alone = psrt.fit(model_of(), TRAIN, batch_size=50, say=silent)
    np.testing.assert_allclose(first.predict(VALID), alone.predict(VALID), atol=0.02)
    first.save(tmp_path / "model")
    assert psrt.load_inference_model(tmp_path / "model").feeds == ["ids", "x"]
    with pytest.raises(ProgramError, match="trainer 0 keeps those of a cluster"):
        second.predict(VALID)


def test_files_are_read_anew_for_each_epoch(tmp_path: Path) -> None:
    lines = (
        f"1 {int(i)} 2 {a} {b} 1 {c}\n"
        for i, (a, b), c in zip(TRAIN["ids"][:, 0], TRAIN["x"], TRAIN["click"][:, 0], strict=True)
    )
    (tmp_path / "part-0").write_text("".join(lines))

    fitted = psrt.fit(model_of(), str(tmp_path / "part-*"), epochs=2, batch_size=50, say=silent)

    assert [epoch.train.examples for epoch in fitted.history] == [1500, 1500]


def test_a_generator_is_refused_since_it_ends_with_the_first_epoch() -> None:
    with pytest.raises(DataError, match="does not begin anew"):
        psrt.fit(model_of(), (feed for feed in [TRAIN]), say=silent)


def test_arrays_of_other_lengths_are_refused() -> None:
    with pytest.raises(DataError, match="click 10"):
        psrt.fit(model_of(), TRAIN | {"click": TRAIN["click"][:10]}, say=silent)


def test_a_mode_that_is_misspelt_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="Did you mean async"):
        psrt.fit(model_of(), TRAIN, mode="asinc", cluster="127.0.0.1:1", say=silent)


def test_callbacks_get_each_epoch_and_may_end_the_training() -> None:
    seen: list[int] = []

    def until_the_second(epoch: EpochLosses) -> bool:
        seen.append(epoch.epoch)
        return epoch.epoch == 2

    callbacks = [until_the_second, lambda epoch: seen.append(-epoch.epoch)]
    fitted = psrt.fit(model_of(), TRAIN, epochs=9, callbacks=callbacks, say=silent)

    assert seen == [1, -1, 2, -2]
    assert len(fitted.history) == 2


def test_a_training_that_gains_too_little_stops_early() -> None:
    callbacks = [psrt.stop_early(patience=2, metric="auc", min_delta=1.0)]

    fitted = psrt.fit(model_of(), TRAIN, VALID, epochs=9, callbacks=callbacks, say=silent)

    assert len(fitted.history) == 3


def test_stopping_early_needs_validation_data() -> None:
    with pytest.raises(ConfigError, match="found no such value after epoch 1") as caught:
        psrt.fit(model_of(), TRAIN, callbacks=[psrt.stop_early()], say=silent)

    assert "Give psrt.fit validation data" in caught.value.hint


def test_a_mode_without_pservers_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="mode collective, which trains without pservers"):
        psrt.fit(model_of(), TRAIN, cluster="127.0.0.1:6170", mode="collective", say=silent)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_callback_of_one_trainer_ends_the_training_of_all(mode: str) -> None:
    with live_pservers(1) as pservers:

        def one(trainer: int) -> Fitted:
            return psrt.fit(
                model_of(),
                {name: each[trainer::2] for name, each in TRAIN.items()},
                epochs=500,
                batch_size=375,
                mode=mode,
                cluster=[pservers[0].endpoint],
                trainers=2,
                trainer_id=trainer,
                callbacks=[lambda epoch: trainer == 1 and epoch.epoch == 2],
                say=silent,
            )

        with ThreadPoolExecutor(2) as trainers:
            first, second = trainers.map(one, range(2))

    assert len(second.history) == 2
    assert len(first.history) < 500
