# What people write with redis-py; fails by assertion. Arguments: port, protocol.
import sys
import threading
import redis

port, protocol = int(sys.argv[1]), int(sys.argv[2])
options = {"port": port, "decode_responses": True}
# Versions before 5 know RESP2 only.
if int(redis.__version__.split(".")[0]) >= 5:
    options["protocol"] = protocol
elif protocol == 3:
    print("skipped: redis-py", redis.__version__, "has no RESP3")
    sys.exit(0)
r = redis.Redis(**options)
r.flushall()

assert r.ping()
assert r.set("k", "v", ex=100) and r.get("k") == "v" and 90 < r.ttl("k") <= 100
assert r.set("k", "w", nx=True) is None and r.get("missing") is None
raw = redis.Redis(**{**options, "decode_responses": False})
every_byte = bytes(range(256)) * 100
assert raw.set("bytes", every_byte) and raw.get("bytes") == every_byte

assert r.hset("h", mapping={"a": 1, "b": "two"}) == 2
assert r.hgetall("h") == {"a": "1", "b": "two"}
assert r.rpush("l", *range(5)) == 5 and r.lrange("l", 1, -2) == ["1", "2", "3"]
assert r.sadd("s", "m", "n") == 2 and r.smembers("s") == {"m", "n"}
assert r.zadd("z", {"one": 1, "more": 2.5}) == 2
assert [list(p) for p in r.zrange("z", 0, -1, withscores=True)] == [["one", 1.0], ["more", 2.5]]
assert r.zscore("z", "more") == 2.5 and r.zrank("z", "one") == 0
assert r.type("z") == "zset" and r.dbsize() == 6

try:
    r.lpush("k", "x")
    raise SystemExit("no error")
except redis.ResponseError as e:
    assert str(e).startswith("WRONGTYPE"), e

p = r.pipeline(transaction=False)
for i in range(1000):
    p.incr("n")
assert p.execute() == list(range(1, 1001))
with r.pipeline() as p:
    p.watch("n")
    value = int(p.get("n"))
    p.multi()
    p.set("n", value + 1)
    assert p.execute() == [True]
    p.watch("n")
    r.set("n", "changed")
    p.multi()
    p.set("n", "mine")
    try:
        p.execute()
        raise SystemExit("the watch saw nothing")
    except redis.WatchError:
        pass

s = r.pubsub()
s.subscribe("news")
s.psubscribe("n*")
types = [s.get_message(timeout=5)["type"] for _ in range(2)]
assert types == ["subscribe", "psubscribe"], types
assert r.publish("news", "hello") == 2
heard = [s.get_message(timeout=5) for _ in range(2)]
assert [(m["type"], m["data"]) for m in heard] == [("message", "hello"), ("pmessage", "hello")]
s.close()

threading.Timer(0.1, lambda: r.rpush("queue", "job")).start()
assert list(r.blpop("queue", timeout=5)) == ["queue", "job"]
assert r.blpop("queue", timeout=0.05) is None

r.mset({f"scan:{i}": i for i in range(1000)})
assert len(set(r.scan_iter("scan:*", count=37))) == 1000
r.hset("big", mapping={f"f{i}": i for i in range(1000)})
assert len(dict(r.hscan_iter("big"))) == 1000

info = r.info()
assert info["redis_mode"] == "standalone" and info["db0"]["keys"] > 1000
assert r.config_get("maxmemory")["maxmemory"] == "0"
assert "get" in r.command() and any(c["addr"] for c in r.client_list())
with r.lock("lock", timeout=5) as lock:
    assert lock.locked() and not r.lock("lock", timeout=5).acquire(blocking=False)
    assert lock.extend(5) and lock.reacquire()
assert r.get("lock") is None

multiply = r.register_script("return redis.call('GET', KEYS[1]) * ARGV[1]")
r.set("factor", 6)
assert multiply(keys=["factor"], args=[7]) == 42
r.script_flush()
assert multiply(keys=["factor"], args=[7]) == 42
with r.pipeline() as p:
    p.incr("factor")
    multiply(keys=["factor"], args=[2], client=p)
    assert p.execute() == [7, 14]
try:
    r.eval("return redis.call('LPUSH', KEYS[1], 1)", 1, "factor")
except redis.ResponseError as error:
    assert "WRONGTYPE" in str(error), error
else:
    raise AssertionError("no error")
ids = [r.xadd("stream", {"n": n}) for n in range(5)]
assert r.xlen("stream") == 5 and r.xrange("stream", ids[1], ids[2]) == [
    (ids[1], {"n": "1"}),
    (ids[2], {"n": "2"}),
]


def entries_of(read):
    """Version 6 and later tell apart protocols: a list of pairs, or a dictionary of lists."""
    if isinstance(read, dict):
        return [entry for part in read["stream"] for entry in part]
    return read[0][1]


assert [i for i, _ in entries_of(r.xread({"stream": ids[2]}))] == ids[3:]
assert r.xgroup_create("stream", "group", "0")
given = entries_of(r.xreadgroup("group", "one", {"stream": ">"}, count=3))
assert [i for i, _ in given] == ids[:3]
assert r.xack("stream", "group", ids[0]) == 1
assert r.xpending("stream", "group")["pending"] == 2
claimed = r.xautoclaim("stream", "group", "two", 0, count=1)
assert claimed[1][0][0] == ids[1]
assert [one["consumer"] for one in r.xpending_range("stream", "group", "-", "+", 9)] == ["two", "one"]
waiting = threading.Thread(target=lambda: late.append(r.xread({"stream": "$"}, block=0)))
late = []
waiting.start()
while r.info("clients")["blocked_clients"] == 0:
    pass
last = r.xadd("stream", {"n": "late"})
waiting.join()
assert entries_of(late[0]) == [(last, {"n": "late"})]
assert {one["name"]: one["pending"] for one in r.xinfo_consumers("stream", "group")} == {
    "one": 1,
    "two": 1,
}
print("passed with redis-py", redis.__version__)
