# What people write with redis-py, as a tenant that wants more than its quota. Arguments: port, user (its password is
# the same). Fails by assertion.
import sys
import time

import redis

port, user = int(sys.argv[1]), sys.argv[2]
r = redis.Redis(port=port, username=user, password=user, decode_responses=True)
r.delete("n", "t")
client = r.client_id()

# One connection by itself never wants more than it can wait for.
for i in range(3000):
    assert r.incr("n") == i + 1

left, refused, rounds = list(range(5000)), 0, 0
# Some 2 s of the quota; how many rounds that is depends on how fast this machine is.
deadline = time.monotonic() + 45
while left:
    rounds += 1
    assert time.monotonic() < deadline, (len(left), rounds)
    p = r.pipeline(transaction=False)
    for n in left:
        p.set("p%d" % n, n).echo(n)
    answers = p.execute(raise_on_error=False)
    again, retry_ms = [], 0
    for i, n in enumerate(left):
        assert answers[2 * i + 1] == str(n)
        answer = answers[2 * i]
        if answer is True:
            continue
        assert isinstance(answer, redis.ResponseError), answer
        text = str(answer)
        assert text.startswith("TRYAGAIN RU limit: tenant=%s kind=write need=" % user), text
        retry_ms = int(text.rsplit("retry_after_ms=", 1)[1])
        again.append(n)
    refused += len(again)
    left = again
    time.sleep(retry_ms / 1000)
assert refused > 0
assert r.get("p4999") == "4999"

done = 0
while done < 20:
    p = r.pipeline(transaction=True)
    for i in range(50):
        p.incr("t")
    try:
        assert p.execute()[-1] == (done + 1) * 50
        done += 1
    except redis.ResponseError as e:
        assert "(transaction discarded)" in str(e), e
        time.sleep(0.1)
assert r.get("t") == str(20 * 50)

# All this over the connection it began with.
assert r.client_id() == client
print("passed", refused, rounds)
