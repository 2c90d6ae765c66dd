# Tasks of Celery. Words: port. Prints `passed` at the end.

import os
import subprocess
import sys

from celery import Celery, chord, group

if __name__ == '__main__':
    os.environ['BROKER'] = f'redis://127.0.0.1:{sys.argv[1]}/0'
url = os.environ['BROKER']
app = Celery('celery_work', broker=url, backend=url)
app.conf.update(
    task_acks_late=True,
    broker_connection_retry_on_startup=True,
    worker_prefetch_multiplier=4,
)


@app.task(name='add')
def add(a, b):
    return a + b


@app.task(name='total')
def total(numbers):
    return sum(numbers)


@app.task(name='flaky', bind=True, max_retries=5)
def flaky(self, failures):
    if self.request.retries < failures:
        raise self.retry(countdown=0.05)
    return self.request.retries


@app.task(name='broken')
def broken():
    raise ValueError('as it should')


def work():
    results = [add.delay(n, n) for n in range(200)]
    assert [result.get(timeout=60) for result in results] == [2 * n for n in range(200)]
    assert group(add.s(n, 1) for n in range(10))().get(timeout=30) == list(range(1, 11))
    assert chord([add.s(n, n) for n in range(10)])(total.s()).get(timeout=30) == 90
    assert (add.s(1, 2) | add.s(10)).delay().get(timeout=30) == 13
    assert flaky.delay(3).get(timeout=30) == 3
    assert add.apply_async((1, 1), countdown=0.3).get(timeout=30) == 2
    try:
        broken.delay().get(timeout=30)
        raise AssertionError('it did not fail')
    except ValueError:
        pass
    with app.connection_or_acquire() as connection:
        assert connection.default_channel.client.llen('celery') == 0


def main():
    command = [sys.executable, '-m', 'celery', '-A', 'celery_work', 'worker']
    worker = subprocess.Popen(
        [*command, '--pool', 'threads', '--concurrency', '4', '--loglevel', 'ERROR'],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        work()
    finally:
        worker.terminate()
        worker.wait(30)
    print('passed')


if __name__ == '__main__':
    main()
