import pytest
from pyspark.sql import SparkSession
from ingest_platform_tests.topic_records import as_records, produce
CASES={
 "notnull": dict(schema="id BIGINT NOT NULL, name STRING"),
 "nested notnull": dict(schema="u STRUCT<id: BIGINT NOT NULL>"),
 "dup": dict(schema="id BIGINT, ID STRING"),
 "hours of bigint": dict(schema="id BIGINT", table={"partition_by":["hours(id)"]}),
 "part taken": dict(schema="ts TIMESTAMP, ts_hour STRING", table={"partition_by":["hours(ts)"]}),
 "part twice": dict(schema="id BIGINT", table={"partition_by":["id","id"]}),
 "part struct": dict(schema="id STRUCT<a: INT>, x INT", table={"partition_by":["id"]}),
 "part all": dict(schema="id BIGINT", table={"partition_by":["id"],"coordinates":False}),
 "bad name": dict(schema="`a b` BIGINT"),
 "dot name": dict(schema="`a.b` BIGINT, `user-id` INT"),
 "bad prop": dict(schema="id BIGINT", table={"properties":{"delta.foo":"1"}}),
 "bad prop value": dict(schema="id BIGINT", table={"properties":{"delta.checkpointInterval":"x"}}),
 "event_time missing": dict(schema="id BIGINT", table={"event_time":"nope"}),
 "interval type": dict(schema="i INTERVAL DAY"),
 "void": dict(schema="i VOID"), "variant": dict(schema="i VARIANT"), "char": dict(schema="i CHAR(3)"), "binary": dict(schema="i BINARY"), "ntz": dict(schema="i TIMESTAMP_NTZ"),"time": dict(schema="i TIME"),
 "start": dict(schema="id BIGINT", source={"starting_offsets":{"nope":{"0":1}}}),
 "start2": dict(schema="id BIGINT", source={"starting_offsets":{"TOPIC":{"0":1,"1":0}}}),
 "opt": dict(schema="id BIGINT", source={"options":{"kafka.max.poll.records":"x"}}),
 "columnmap": dict(schema="`a b` BIGINT", table={"properties":{"delta.columnMapping.mode":"name"}}),
 "nest add": dict(schema="id BIGINT"),
}
@pytest.mark.parametrize("case", CASES)
def test_x(spark, kafka, topic, deploy, case):
    name = topic()
    import json
    kw=json.loads(json.dumps(CASES[case]).replace("TOPIC",name))
    stream = deploy(name, **kw)
    places = produce(kafka.bootstrap_servers, name, as_records([b'{"id":1,"name":"a"}', b"{", b"{}", b'{"a b":1,"u":{}}']))
    try:
        stream.drain(spark)
        print("RES",case, "OK")
    except Exception as e:
        print("RES",case,"ERROR", type(e).__name__, str(e)[:330].replace("\n"," "))
    try:
        print("RES",case,"ROWS", len(stream.rows()), len(stream.rejected()), [r["detail"] for r in stream.rejected()])
    except Exception as e: print("RES", case, "READ", str(e)[:100])
    assert 0
