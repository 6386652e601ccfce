"""Dask and Spark, for real: processes of a local cluster give the table of the local run."""

from __future__ import annotations

import json
import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import questions
from batch_cases import POLICY, content, explain, rows
from ifonly import Explainer, SchemaError
from ifonly.batch.parcels import Parcel

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("default")]

TESTS = str(Path(__file__).resolve().parents[1])


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    return questions.explainer()


# -- Dask -------------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    distributed = pytest.importorskip(
        "distributed", reason="Dask's scheduler is not installed: pip install distributed"
    )
    with (
        warnings.catch_warnings(),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as connected,
    ):
        yield connected


def test_dask_writes_the_shards_of_the_local_run(client: Any, explainer: Explainer, tmp_path: Path) -> None:
    explain(explainer, tmp_path / "here", output="csv")
    with client.get_executor() as executor:
        there = explain(explainer, tmp_path / "there", output="csv", executor=executor)
    assert there.is_complete()
    assert content(tmp_path / "there") == content(tmp_path / "here")
    processes = client.run(os.getpid)
    assert len(set(processes.values()) - {os.getpid()}) == 2
    assert there.verify().ok


def test_dask_in_memory_gives_the_answers_of_the_local_run(client: Any, explainer: Explainer) -> None:
    here = explainer.explain_all(rows(), want="good", criteria=POLICY)
    with client.get_executor() as executor:
        there = explainer.explain_all(rows(), want="good", criteria=POLICY, executor=executor)
    assert there.status().equals(here.status())
    pd.testing.assert_frame_equal(there.frame(), here.frame())


def test_the_explainer_goes_to_each_dask_worker_once(client: Any, explainer: Explainer) -> None:
    from ifonly.batch.executors import sent

    parcel = Parcel.of((explainer, {}))
    with client.get_executor() as executor:
        future = sent(parcel, executor)
        assert future is not parcel
        places = client.who_has([future])
    assert [len(workers) for workers in places.values()] == [2]


# -- Spark ------------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    pyspark = pytest.importorskip("pyspark", reason="Spark is not installed: pip install pyspark")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs a Java runtime; on Debian: apt-get install default-jre-headless")
    del pyspark
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    source = str(Path(__file__).resolve().parents[2] / "src")
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [source, TESTS, before]))
    session = (
        SparkSession.builder.master("local[2]")
        .appName("ifonly")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
    if before is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = before


def spark_rows(spark: Any, table: pd.DataFrame) -> Any:
    return spark.createDataFrame([tuple(line) for line in table.itertuples(index=False)], list(table.columns))


def test_spark_gives_the_table_of_the_local_run(spark: Any, explainer: Explainer, tmp_path: Path) -> None:
    from ifonly.spark import columns
    from ifonly.spark import explain as explain_spark

    table = rows().drop(index=7).reset_index(drop=True)
    table.insert(0, "id", [f"k{i}" for i in table.index])
    table = table.astype({"age": int, "debts": int})
    df = spark_rows(spark, table.assign(home=table["home"].astype(bool))).repartition(4)
    answers = explain_spark(df, explainer, want="good", criteria=POLICY, keys=["id"])
    assert answers.columns == ["id", *[c.name for c in columns(explainer)]]
    answers.write.parquet(str(tmp_path / "answers"))
    there = spark.read.parquet(str(tmp_path / "answers")).orderBy("id").collect()

    batch = explain(explainer, tmp_path / "here", table.set_index("id"), output="csv")
    here = pd.read_csv(batch.collect().answers, dtype={"key": str}).sort_values("key", ignore_index=True)
    assert [line["id"] for line in there] == here["key"].tolist()
    assert [line["status"] for line in there] == here["status"].tolist()
    for name in (
        c.name for c in columns(explainer) if c.kind in ("int", "float", "bool", "text") and c.name != "seconds"
    ):
        assert [line[name] for line in there] == [None if pd.isna(v) else v for v in here[name]], name
    for name in ("conflict", "relaxations"):
        assert [line[name] for line in there] == [None if pd.isna(v) else json.loads(v) for v in here[name]], name
    changed = [[tuple(change) for change in line["changes"] or ()] for line in there]
    tidy = pd.read_csv(batch.collect().changes, dtype=str)
    local = {key: part[["feature", "from", "to"]].to_numpy().tolist() for key, part in tidy.groupby("key")}
    assert [[list(c) for c in line] for line in changed] == [local.get(key, []) for key in here["key"]]


def test_spark_refuses_wrong_columns_before_it_starts(spark: Any, explainer: Explainer) -> None:
    from ifonly.spark import explain as explain_spark

    df = spark_rows(spark, questions.people(4).rename(columns={"income": "incom"}))
    with pytest.raises(SchemaError, match=r"no column 'income'. Did you mean 'incom'\?"):
        explain_spark(df, explainer, want="good")
    df = spark_rows(spark, questions.people(4).assign(status=1))
    with pytest.raises(SchemaError, match="name of a column of the answers"):
        explain_spark(df, explainer, want="good", keys=["status"])
