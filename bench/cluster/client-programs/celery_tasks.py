# Tasks are sent to a Celery worker until the input ends. Words: ports, key. A task notes its number in a list; those that
# were acknowledged must all be there. The broker is the first node.

import json
import os
import subprocess
import sys
import threading
import time

from celery import Celery
from redis import Redis

if __name__ == "__main__":
    os.environ["PORT"], os.environ["KEY"] = sys.argv[1].split(",")[0], sys.argv[2]
port, key = os.environ["PORT"], os.environ["KEY"]
app = Celery("celery_tasks", broker=f"redis://127.0.0.1:{port}/0")
app.conf.update(
    task_acks_late=True,
    task_default_queue=f"{key}:queue",
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_transport_options={"visibility_timeout": 3600},
)
notes = Redis(port=int(port))


@app.task(name="note", autoretry_for=(Exception,), retry_backoff=0.1, max_retries=20)
def note(n):
    notes.rpush(key, n)


def main():
    is_over = threading.Event()
    end = threading.Thread(target=lambda: (sys.stdin.read(), is_over.set()), daemon=True)
    end.start()
    command = [sys.executable, "-m", "celery", "-A", "celery_tasks", "worker"]
    worker = subprocess.Popen(
        [*command, "--pool", "threads", "--concurrency", "4", "--loglevel", "CRITICAL"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    result = {"written": 0, "refused": [], "errors": {}, "longestGapMs": 0}
    last = time.monotonic()
    while not is_over.is_set():
        n = result["written"]
        result["written"] += 1
        try:
            note.apply_async((n,), retry=True, retry_policy={"max_retries": 50, "interval_max": 1})
            now = time.monotonic()
            result["longestGapMs"] = max(result["longestGapMs"], 1000 * (now - last))
            last = now
        except Exception as error:
            text = f"{type(error).__name__}: {error}"[:120]
            result["errors"][text] = result["errors"].get(text, 0) + 1
            result["refused"].append(n)
        time.sleep(0.01)
    # Until the worker has done all, a minute at most: what is not done then counts as lost.
    wanted = result["written"] - len(result["refused"])
    for _ in range(600):
        if len(set(notes.lrange(key, 0, -1))) >= wanted:
            break
        time.sleep(0.1)
    worker.terminate()
    worker.wait(30)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
