"""Positions of trainers dealt to another number of them: each epoch has each example once."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psrt.config.load import load_job
from psrt.config.sections import SHARES
from psrt.core.errors import ConfigError, DataError
from psrt.data.sources import BEGINNING
from psrt.trainer.inputs import batches
from psrt.trainer.inputs.dealt import DealtEpoch
from psrt.trainer.inputs.job import Job
from psrt.trainer.inputs.job import load_job as build
from psrt.trainer.inputs.redealing import COMPLETED, LOST, go_on_of, reached_in
from psrt.trainer.inputs.state import AT_THE_START, DataShare, Reached, Recorder
from tests.support.small_job import write_files

EPOCHS, BATCH = 3, 4
ROWS = [13, 2, 9, 1, 11]


def job_of(
    directory: Path, rows: list[int], shard: str = "modulo", seed: int = -1, threads: int = 1
) -> Job:
    """A job whose examples have the ids 0, 1, …, each in one line."""
    first, texts = 0, []
    for count in rows:
        texts.append([f"1 1 1 {first + i} 2 0 0\n" for i in range(count)])
        first += count
    path = write_files(directory, texts, batch=BATCH, epochs=EPOCHS)
    more = f'[data]\nshard = "{shard}"\nshuffle_seed = {seed}\nreader_threads = {threads}\n'
    path.write_text(path.read_text().replace("[data]\n", more))
    return build(load_job(str(path), environ={}).config)


def share_of(job: Job, trainer: int, trainers: int) -> DataShare:
    files = batches.training_files(job, trainer, trainers)
    seed = job.config.data.shuffle_seed
    return DataShare(job.config.name, trainer, trainers, tuple(map(str, files)), seed)


def train(job: Job, share: DataShare, start: Reached, steps: int) -> tuple[Counter, str]:
    """Examples by (epoch, id) of some steps from `start`, and the position in a cut behind them."""
    files = batches.training_files(job, share.trainer, share.trainers)
    recorder = Recorder("", share, start)
    position = recorder.begin_at(start)
    seen: Counter[tuple[int, int]] = Counter()
    fed = list(batches.feed(job, files, EPOCHS, start=start))
    for batch, following in list(pairwise([*fed, None]))[:steps]:
        assert batch is not None
        seen.update((batch.epoch, int(i)) for i in batch.feed["ids"].values)
        position = recorder.position_after(batch, following)
        recorder.trained(batch, following)
    return seen, position()


STEPS = st.lists(st.integers(0, 30), min_size=9, max_size=9)


@given(
    rows=st.lists(st.integers(1, 15), min_size=1, max_size=6),
    shard=st.sampled_from(SHARES),
    seed=st.integers(-1, 3),
    threads=st.integers(1, 2),
    chain=st.lists(st.tuples(st.integers(1, 5), STEPS), min_size=2, max_size=4),
)
@settings(max_examples=80)
def test_each_epoch_has_each_example_once_over_any_chain_of_jobs(
    tmp_path: Path,
    rows: list[int],
    shard: str,
    seed: int,
    threads: int,
    chain: list[tuple[int, list[int]]],
) -> None:
    for old in tmp_path.glob("train-*"):
        old.unlink()
    job = job_of(tmp_path, rows, shard, seed, threads)
    seen: Counter[tuple[int, int]] = Counter()
    positions = [""]
    for trainers, steps in [*chain, (2, [1000] * 9)]:
        try:
            shares = [share_of(job, trainer, trainers) for trainer in range(trainers)]
        except DataError:
            continue  # this number of trainers cannot share these files
        begins = begins_of(positions, job, shares)
        done = [
            train(job, share, begin, count)
            for share, begin, count in zip(shares, begins, steps, strict=False)
        ]
        seen = sum((each for each, _ in done), seen)
        positions = [position for _, position in done]

    if len(positions) == 2 and all(json.loads(each)["epoch"] > EPOCHS for each in positions):
        assert seen == Counter((e, i) for e in range(1, EPOCHS + 1) for i in range(sum(rows)))
    else:
        assert max(seen.values(), default=0) <= 1


def begins_of(positions: list[str], job: Job, shares: list[DataShare]) -> list[Reached]:
    if len(positions) == len(shares):  # as in a cut of as many trainers
        pairs = zip(positions, shares, strict=True)
        return [reached_in(7, position, (), job, share) for position, share in pairs]
    return [reached_in(7, "", positions, job, share) for share in shares]


def test_the_first_whole_epoch_is_shared_out_as_always(tmp_path: Path) -> None:
    job = job_of(tmp_path, [13, 12, 9])
    positions = [train(job, share_of(job, t, 2), AT_THE_START, 2)[1] for t in range(2)]

    begins = go_on_of(positions, "cut 7", job, 3)

    assert [[each.epoch for each in begin.dealt] for begin in begins] == [[1], [1], [1]]
    assert {begin.steps for begin in begins} == {2}
    seen, _ = train(job, share_of(job, 2, 3), begins[2], 1000)
    assert {i for epoch, i in seen if epoch > 1} == set(range(25, 34))


def test_an_end_of_an_epoch_leaves_nothing_to_deal(tmp_path: Path) -> None:
    job = job_of(tmp_path, [8, 8])
    positions = [train(job, share_of(job, t, 2), AT_THE_START, 2)[1] for t in range(2)]

    assert go_on_of(positions, "cut 7", job, 1) == [Reached(2, 2, BEGINNING)]


def test_completed_trainers_have_no_rest(tmp_path: Path) -> None:
    job = job_of(tmp_path, ROWS)
    _, position = train(job, share_of(job, 0, 2), AT_THE_START, 1)
    left, _ = train(
        job, share_of(job, 0, 2), reached_in(7, position, (), job, share_of(job, 0, 2)), 99
    )

    begins = go_on_of([position, COMPLETED], "cut 7", job, 3)
    again = [train(job, share_of(job, t, 3), begin, 99)[0] for t, begin in enumerate(begins)]

    assert sum(again, Counter()) == left
    assert all(again)


def test_the_rest_of_a_lost_trainer_is_given_up_but_not_its_share_of_later_epochs(
    tmp_path: Path,
) -> None:
    job = job_of(tmp_path, ROWS)
    mine, position = train(job, share_of(job, 0, 2), AT_THE_START, 5)

    begins = go_on_of([position, LOST], "cut 7", job, 2)
    seen = mine + sum(
        (train(job, share_of(job, t, 2), b, 99)[0] for t, b in enumerate(begins)), Counter()
    )

    first = {i for epoch, i in seen if epoch == 1}
    files_of_0 = {*range(13), *range(15, 24), *range(25, 36)}
    assert first == files_of_0
    assert {each for each in seen if each[0] > 1} == {(e, i) for e in (2, 3) for i in range(36)}
    assert set(seen.values()) == {1}


def test_compressed_files_stay_whole(tmp_path: Path) -> None:
    job = job_of(tmp_path, ROWS)
    for file in tmp_path.glob("train-*"):
        file.write_bytes(gzip.compress(file.read_bytes()))
    done = [train(job, share_of(job, t, 2), AT_THE_START, 2) for t in range(2)]

    begins = go_on_of([position for _, position in done], "cut 7", job, 3)
    after = [train(job, share_of(job, t, 3), begin, 99)[0] for t, begin in enumerate(begins)]

    seen = sum(after, done[0][0] + done[1][0])
    assert seen == Counter((e, i) for e in range(1, EPOCHS + 1) for i in range(36))


def test_a_trainer_that_had_not_joined_begins_with_its_deal(tmp_path: Path) -> None:
    job = job_of(tmp_path, ROWS)
    done = [train(job, share_of(job, t, 2), AT_THE_START, 2) for t in range(2)]
    first = [position for _, position in done]
    begins = go_on_of(first, "cut 7", job, 3)
    seen, position = train(job, share_of(job, 0, 3), begins[0], 1)
    unseen = [
        json.dumps({"deal": {"positions": first, "trainer": t, "trainers": 3}}) for t in (1, 2)
    ]

    assert reached_in(8, unseen[0], (), job, share_of(job, 1, 3)) == begins[1]
    again = go_on_of([position, *unseen], "cut 8", job, 2)

    after = [train(job, share_of(job, t, 2), begin, 99)[0] for t, begin in enumerate(again)]
    seen = sum(after, done[0][0] + done[1][0] + seen)
    assert seen == Counter((e, i) for e in range(1, EPOCHS + 1) for i in range(36))


def test_a_position_keeps_dealt_epochs(tmp_path: Path) -> None:
    job = job_of(tmp_path, ROWS)
    positions = [train(job, share_of(job, t, 2), AT_THE_START, 3)[1] for t in range(2)]
    begin = go_on_of(positions, "cut 7", job, 3)[1]
    share = share_of(job, 1, 3)

    again = reached_in(8, Recorder("", share, begin).begin_at(begin)(), (), job, share)

    assert again == begin
    assert isinstance(again.dealt[0], DealtEpoch)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"job": "big"}, "cut 7, trainer 1, is of another share of the data: job is 'big'"),
        ({"shuffle_seed": 3}, "shuffle seed is 3 there and -1 here"),
        ({"files": ["gone"]}, "file that differs is 'gone' there and '.*train-1' here"),
    ],
)
def test_positions_in_other_data_are_refused(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    job = job_of(tmp_path, ROWS)
    positions = [train(job, share_of(job, t, 2), AT_THE_START, 3)[1] for t in range(2)]
    positions[1] = json.dumps(json.loads(positions[1]) | change)

    with pytest.raises(ConfigError, match=message):
        go_on_of(positions, "cut 7", job, 3)


@pytest.mark.parametrize("text", ["{", "[]", '{"psrt_state": 9}', '{"deal": {}}'])
def test_a_position_of_another_program_is_refused(tmp_path: Path, text: str) -> None:
    job = job_of(tmp_path, ROWS)

    with pytest.raises(DataError, match=r"cut 7, trainer 0, (has no position|is not a state)"):
        go_on_of([text, ""], "cut 7", job, 3)
