# Jobs of RQ. Words: port. Prints `passed` at the end.

import logging
import sys
from datetime import timedelta

import redis
from rq import Queue, Retry, SimpleWorker
from rq.job import Job

connection = redis.Redis(port=int(sys.argv[1])) if __name__ == '__main__' else None


def double(n):
    return 2 * n


def fail_until(key, times, port):
    client = redis.Redis(port=port)
    count = client.incr(key)
    client.close()
    if count <= times:
        raise ValueError(f'attempt {count}')
    return count


def run(*queues, scheduler=False):
    worker = SimpleWorker(queues, connection=connection)
    worker.work(burst=True, logging_level='CRITICAL', with_scheduler=scheduler)


def main():
    import rq_work as jobs

    port = int(sys.argv[1])
    connection.flushdb()
    low, high = Queue('low', connection=connection), Queue('high', connection=connection)
    many = [low.enqueue(jobs.double, n) for n in range(100)]
    urgent = high.enqueue(jobs.double, 1000)
    assert (low.count, high.count) == (100, 1)
    run(high, low)
    assert [job.return_value() for job in many] == [2 * n for n in range(100)]
    urgent.refresh()
    many[0].refresh()
    assert urgent.ended_at <= many[0].ended_at
    assert low.finished_job_registry.count == 100

    again = low.enqueue(jobs.fail_until, 'tries', 2, port, retry=Retry(max=3))
    lost = low.enqueue(jobs.fail_until, 'lost', 9, port)
    run(low)
    assert again.return_value() == 3
    assert lost.get_status(refresh=True) == 'failed'
    assert low.failed_job_registry.count == 1
    low.failed_job_registry.requeue(lost.id)
    assert low.count == 1
    low.empty()

    first = low.enqueue(jobs.double, 1)
    second = low.enqueue(jobs.double, 2, depends_on=first)
    assert second.get_status() == 'deferred'
    run(low)
    assert Job.fetch(second.id, connection=connection).return_value() == 4

    later = low.enqueue_in(timedelta(hours=1), jobs.double, 5)
    assert later.id in low.scheduled_job_registry.get_job_ids()
    later.cancel()
    assert low.scheduled_job_registry.count == 0
    print('passed')


if __name__ == '__main__':
    sys.path.insert(0, sys.path[0])
    logging.disable(logging.CRITICAL)
    main()
