# What people write with redis-py on a table of which one partition is at its ceiling. Arguments: port, user (its
# password is the same). Fails by assertion.
import sys
import time

import redis

port, user = int(sys.argv[1]), sys.argv[2]
r = redis.Redis(port=port, username=user, password=user, decode_responses=True)
r.delete("hot")
client = r.client_id()

done, refused = 0, 0
deadline = time.monotonic() + 45
while done < 2000:
    assert time.monotonic() < deadline, (done, refused)
    p = r.pipeline(transaction=False)
    for i in range(500):
        p.incr("hot")
    retry_ms = 0
    for answer in p.execute(raise_on_error=False):
        if isinstance(answer, int):
            done += 1
            assert answer == done
            continue
        text = str(answer)
        assert text.startswith("TRYAGAIN RU limit: tenant=%s kind=partition need=" % user), text
        retry_ms = int(text.rsplit("retry_after_ms=", 1)[1])
        refused += 1
    time.sleep(retry_ms / 1000)
assert refused > 0
assert r.client_id() == client
print("passed", refused)
