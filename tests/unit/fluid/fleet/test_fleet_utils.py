"""`fleet.utils`: files here and by `hadoop`, metrics of all workers, and passes of a day."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.fluid.contrib.utils import HDFSClient, multi_download, multi_upload
from psrt.fluid.incubate.fleet.base import role_maker
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from psrt.fluid.incubate.fleet.utils import hdfs
from psrt.fluid.incubate.fleet.utils.fleet_barrier_util import check_all_trainers_ready
from psrt.fluid.incubate.fleet.utils.fleet_util import FleetUtil, bucket_error
from psrt.fluid.incubate.fleet.utils.fs import FSFileExistsError, FSFileNotExistsError, LocalFS

HADOOP = """#!/bin/sh
# `hadoop fs` over the files of this host; the options are checked by a test
echo "$@" >> "$(dirname "$0")/calls"
shift
while [ "${1#-D}" != "$1" ]; do shift; done
flag=$1; shift
case $flag in
-test) test "$1" "$2" ;;
-cat) cat "$1" ;;
-mkdir) mkdir -p "$2" ;;
-put | -get) cp -r "$1" "$2" ;;
-mv) mv "$1" "$2" ;;
-rm) rm "$1" ;;
-rmr) rm -r "$1" ;;
-ls) echo "Found some items"
    for file in "$1"/*; do echo "-rw-r--r--   3 me us 5 2020-01-01 00:00 $file"; done ;;
-lsr) find "$1" -mindepth 1 -type d -exec echo "drwxr-xr-x   - me us 0 2020-01-01 00:00 {}" ";"
    find "$1" -type f -exec echo "-rw-r--r--   3 me us 5 2020-01-01 00:00 {}" ";" ;;
esac
"""


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HDFSClient:
    command = tmp_path / "home" / "bin" / "hadoop"
    command.parent.mkdir(parents=True)
    command.write_text(HADOOP)
    command.chmod(0o755)
    monkeypatch.setattr(hdfs, "RETRY_S", 0.0)
    return HDFSClient(str(tmp_path / "home"), {"fs.default.name": "hdfs://a:1"})


def test_files_go_to_hadoop_and_back(client: HDFSClient, tmp_path: Path) -> None:
    here, there = tmp_path / "here", str(tmp_path / "there")
    here.mkdir()
    for name in ("a", "b", "c"):
        (here / name).write_text(f"text {name}\n")

    assert client.makedirs(there)
    client.upload(there, str(here))
    assert client.ls(there) == [f"{there}/{name}" for name in "abc"]
    assert client.cat(f"{there}/b") == "text b"
    assert client.rename(f"{there}/a", f"{there}/z")
    assert not client.rename(f"{there}/b", f"{there}/c")  # exists
    assert client.upload_dir(there, str(here), overwrite=True)
    assert sorted(client.lsr(there, excludes=[f"{there}/z"])) == [
        *(f"{there}/{name}" for name in "bc"),
        *(f"{there}/here/{name}" for name in "abc"),
    ]
    assert client.delete(f"{there}/here")
    assert client.delete(f"{there}/here")  # nothing is left to delete
    found = client.download(there, str(tmp_path / "copy"))
    assert [Path(path).name for path in found] == ["b", "c", "z"]
    calls = (tmp_path / "home" / "bin" / "calls").read_text().splitlines()
    assert all(call.startswith("fs -Dfs.default.name=hdfs://a:1 -") for call in calls)


def test_trees_of_files_go_to_hadoop_and_are_shared_out(client: HDFSClient, tmp_path: Path) -> None:
    here, there, back = tmp_path / "here", str(tmp_path / "there"), tmp_path / "back"
    for name in ("a", "day1/b", "day1/c", "day2/d"):
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text(name)

    multi_upload(client, there, str(here))
    (here / "a").write_text("new")
    multi_upload(client, there, str(here), overwrite=True)
    shares = [multi_download(client, there, str(back), trainer, 2) for trainer in range(2)]

    assert shares == [[f"{back}/a", f"{back}/day1/c"], [f"{back}/day1/b", f"{back}/day2/d"]]
    assert (back / "a").read_text() == "new"
    assert (back / "day2" / "d").read_text() == "day2/d"


def test_a_command_that_fails_is_logged(
    client: HDFSClient, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert not client.is_exist(str(tmp_path / "nothing"))
    assert not caplog.records
    assert not client.rename(str(tmp_path / "nothing"), str(tmp_path / "other"))
    assert "ended with 1" in caplog.text
    assert HDFSClient(str(tmp_path / "elsewhere")).ls("/x") == []
    assert "was not run" in caplog.text


def test_files_are_split_in_runs() -> None:
    parts = [HDFSClient.split_files(list("abcdefg"), trainer, 3) for trainer in range(3)]

    assert parts == [["a", "b", "c"], ["d", "e"], ["f", "g"]]


def test_files_of_this_host(tmp_path: Path) -> None:
    fs, top = LocalFS(), str(tmp_path / "top")
    fs.mkdirs(f"{top}/deep/er")
    fs.touch(f"{top}/file")
    fs.upload(f"{top}/file", f"{top}/deep/copy")
    fs.download(f"{top}/deep", f"{top}/again")

    assert fs.ls_dir(top) == (["again", "deep"], ["file"])
    assert fs.list_dirs(f"{top}/again") == ["er"]
    assert fs.ls_dir(f"{top}/nothing") == ([], [])
    with pytest.raises(FSFileExistsError, match="overwrite=True"):
        fs.mv(f"{top}/file", f"{top}/deep")
    fs.mv(f"{top}/file", f"{top}/deep", overwrite=True)
    assert fs.is_file(f"{top}/deep")
    with pytest.raises(FSFileNotExistsError):
        fs.mv(f"{top}/file", f"{top}/x")
    with pytest.raises(FSFileExistsError, match="which is a file"):
        fs.mkdirs(f"{top}/deep")
    fs.delete(f"{top}/again")
    fs.delete(f"{top}/again")
    assert not fs.is_exist(f"{top}/again")


def one_worker() -> None:
    fleet.init(
        role_maker.UserDefinedRoleMaker(
            current_id=0,
            role=role_maker.Role.WORKER,
            worker_num=1,
            server_endpoints=["127.0.0.1:6174"],
        )
    )


def test_trainers_meet_by_files(
    client: HDFSClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_worker()
    monkeypatch.setenv("HADOOP_HOME", str(tmp_path / "home"))

    check_all_trainers_ready(str(tmp_path / "ready"), 3)

    assert [path.name for path in (tmp_path / "ready").iterdir()] == ["ready.3.0.done"]


def test_modes_are_those_of_fluid() -> None:
    FleetUtil()
    FleetUtil(mode="transpiler")
    with pytest.raises(ValueError, match="mode 'other'"):
        FleetUtil("other")


def test_the_first_worker_prints(capsys: pytest.CaptureFixture[str]) -> None:
    one_worker()

    FleetUtil().rank0_print("hello")

    assert capsys.readouterr().out == "hello\n"


def test_a_var_of_the_scope_is_set_to_zero() -> None:
    scope = fluid.global_scope()
    scope["stat"] = np.arange(4)

    FleetUtil().set_zero("stat", scope)

    assert scope["stat"].tolist() == [0, 0, 0, 0]


def test_names_of_the_parts_of_a_pass() -> None:
    interval = FleetUtil().get_online_pass_interval

    assert interval("{20190720..20190729}", "{9..10}", 30, 2, False) == [
        ["0900", "0930"],
        ["1000", "1030"],
    ]
    assert interval("20190720", "9 10", 60, 1, True) == [["09"], ["10"]]


def test_rates_of_buckets_are_compared_with_predictions() -> None:
    rng = np.random.default_rng(0)
    size, shows = 400, 50_000
    chances = np.arange(size) / size
    clicks = rng.binomial(shows, chances)

    assert bucket_error(clicks.astype(float), (shows - clicks).astype(float)) < 0.02
    twice = np.minimum(2 * clicks, shows)
    assert bucket_error(twice.astype(float), (shows - twice).astype(float)) > 0.3
    assert bucket_error(np.zeros(4), np.zeros(4)) == 0.0
