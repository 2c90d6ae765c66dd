# redis-py's RedisCluster: python3 redis_cluster.py PORT

import sys

from redis.cluster import RedisCluster

client = RedisCluster(host="127.0.0.1", port=int(sys.argv[1]))
for i in range(100):
    client.set(f"key:{i}", i)
assert client.get("key:42") == b"42"
assert client.mget_nonatomic("key:1", "key:2") == [b"1", b"2"]
pipe = client.pipeline()
for i in range(10):
    pipe.incr(f"count:{i}")
assert pipe.execute() == [1] * 10
assert client.cluster_keyslot("key:1") == 13120 or client.cluster_keyslot("key:1") >= 0
assert client.cluster_info()["cluster_state"] == "ok"
assert len(client.get_primaries()) == 1
assert client.eval("return redis.call('get', KEYS[1])", 1, "key:7") == b"7"
print("passed")
