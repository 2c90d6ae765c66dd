# redis-py appends numbers to a list until its input ends. Words: plain or cluster, ports, key.

import json
import sys
import threading
import time

from redis import Redis
from redis.backoff import ExponentialBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.exceptions import ConnectionError, TimeoutError
from redis.retry import Retry

kind, ports, key = sys.argv[1], [int(port) for port in sys.argv[2].split(",")], sys.argv[3]
retry = Retry(ExponentialBackoff(cap=1, base=0.05), 20)
if kind == "cluster":
    nodes = [ClusterNode("127.0.0.1", port) for port in ports]
    client = RedisCluster(startup_nodes=nodes, retry=retry, socket_timeout=2)
else:
    client = Redis(
        port=ports[0],
        socket_timeout=2,
        retry=retry,
        retry_on_error=[ConnectionError, TimeoutError],
    )

is_over = threading.Event()


def wait_for_end():
    sys.stdin.read()
    is_over.set()


threading.Thread(target=wait_for_end, daemon=True).start()
result = {"written": 0, "refused": [], "errors": {}, "longestGapMs": 0}
last = time.monotonic()
while not is_over.is_set():
    n = result["written"]
    result["written"] += 1
    try:
        client.rpush(key, n)
        now = time.monotonic()
        result["longestGapMs"] = max(result["longestGapMs"], 1000 * (now - last))
        last = now
    except Exception as error:
        text = f"{type(error).__name__}: {error}"[:120]
        result["errors"][text] = result["errors"].get(text, 0) + 1
        result["refused"].append(n)
        time.sleep(0.02)
print(json.dumps(result))
