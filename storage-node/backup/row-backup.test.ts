import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { assertSameContents } from '../../engines/conformance/contents.ts';
import { Shape } from '../../universal-row/rows.ts';
import { realDisk } from '../disk/real-disk.ts';
import type { Pod } from '../pod.ts';
import { BackupFixture, contentsOf, ended, type Model, put, write } from './backup-fixture.ts';
import { shadowTables } from './shadow.ts';
import { verifyBackup } from './verify.ts';

let f: BackupFixture;
beforeEach(() => {
  f = new BackupFixture();
});
afterEach(() => f.close());

function bytes(text: string): [Buffer, number, number] {
  const b = Buffer.from(text);
  return [b, 0, b.length];
}

/** Rows of every shape, some of them larger than a slice. */
async function fill(pod: Pod, table: number, rows = 500): Promise<void> {
  for (let i = 0; i < rows; i++) {
    await put(
      pod,
      table,
      `key ${i}`,
      `value ${i} ${'.'.repeat(i % 300)}`,
      i % 7 === 0 ? 4e12 + i : 0,
    );
  }
  for (const size of [3, 4000]) {
    await write(pod, (w) => {
      w.row(table, ...bytes(`map ${size}`));
      w.create(Shape.map);
      for (let i = 0; i < size; i++)
        w.field(...bytes(`f${i}`), ...bytes(`v${i}`.repeat(1 + (i % 9))));
    });
    await write(pod, (w) => {
      w.row(table, ...bytes(`array ${size}`));
      w.create(Shape.array);
      for (let i = 0; i < size; i++) w.push(false, ...bytes(`element ${i}`));
    });
    await write(pod, (w) => {
      w.row(table, ...bytes(`ranked ${size}`));
      w.create(Shape.ranked);
      w.expire(4e12);
      for (let i = 0; i < size; i++) w.score(i / 3, ...bytes(`member ${i}`));
    });
  }
}

/** Changes of every kind to what `fill` makes. */
async function change(pod: Pod, table: number): Promise<void> {
  for (let i = 0; i < 50; i++) await put(pod, table, `key ${i}`, `changed ${i}`);
  await put(pod, table, 'key 61', 'renamed');
  await write(pod, (w) => {
    w.row(table, ...bytes('key 60'));
    w.drop();
    w.row(table, ...bytes('key 61'));
    w.rename(...bytes('key 60'));
    w.expire(5e12);
    w.row(table, ...bytes('key 62'));
    w.patch(2, ...bytes('PATCH'));
    w.row(table, ...bytes('map 4000'));
    w.unfield(...bytes('f17'));
    w.field(...bytes('new'), ...bytes('field'));
    w.row(table, ...bytes('array 4000'));
    w.pop(true);
    w.push(true, ...bytes('head'));
    w.element(5, ...bytes('five'));
    w.insert(7, ...bytes('seven'));
    w.remove(9, 3);
  });
  await write(pod, (w) => w.clear(table + 1));
  await put(pod, table + 1, 'after', 'clear');
  await write(pod, (w) => w.swap(table + 1, table + 2));
}

describe.each<Model>(['memory', 'kv'])('rows of %s', (model) => {
  test('come back as they were, and the restore has compared them', async () => {
    const source = await f.pod('source', model);
    await fill(source, 0);
    await fill(source, 3, 20);
    const before = await contentsOf(source);
    const manifest = await f.backup({ [model]: source });
    expect(await verifyBackup(realDisk, f.set, manifest.id)).toMatchObject({ problems: [] });

    const target = await f.pod('target', model);
    const restore = f.restore(manifest, model, target);
    const tables = await restore.load();
    expect(
      tables.map(({ table, rows, checksumCompared }) => [table, rows, checksumCompared]),
    ).toEqual([
      [0, 506, true],
      [3, 26, true],
    ]);
    expect(target.heldTables()).toEqual([shadowTables.first, shadowTables.first + 3]);
    await restore.commit();
    await restore.release();
    assertSameContents(await contentsOf(target), before, 'restored');
    await target.close();
    assertSameContents(await contentsOf(await f.pod('target', model)), before, 'after a restart');
  });

  test('of a chain of incremental backups', async () => {
    let source = await f.pod('source', model);
    await fill(source, 0);
    await fill(source, 1, 20);
    const full = await f.backup({ [model]: source });
    await change(source, 0);
    // The log is truncated, and the pod comes again, before the next one.
    await source.checkpoint();
    await source.checkpoint();
    const second = await f.backup({ [model]: source }, full);
    await source.close();
    source = await f.pod('source', model);
    await fill(source, 4, 30);
    await source.checkpoint();
    const third = await f.backup({ [model]: source }, second);
    const before = await contentsOf(source);
    await put(source, 0, 'too', 'late');
    const kinds = [full, second, third].map(({ parts }) => parts[0]!.kind);
    expect(kinds).toEqual(['all', 'entries', 'entries']);
    expect(await verifyBackup(realDisk, f.set, third.id)).toMatchObject({ problems: [] });

    const target = await f.pod('target', model);
    const restore = f.restore(third, model, target);
    await restore.load();
    await restore.commit();
    await restore.release();
    assertSameContents(await contentsOf(target), before, 'restored');
  });

  test('are of one moment, whatever is written meanwhile', async () => {
    const source = await f.pod('source', model);
    await fill(source, 0);
    const before = await contentsOf(source);
    const { id, backups } = await f.begin({ [model]: source });
    let writing = true;
    const writes = (async () => {
      for (let round = 0; writing; round++) {
        await change(source, 0);
        await put(source, 9, `${round}`, 'new');
        await new Promise(setImmediate);
      }
    })();
    const status = await ended(backups, id);
    writing = false;
    await writes;
    expect(status.error).toBeUndefined();
    const manifest = await f.finish(id, backups);
    const target = await f.pod('target', model);
    const restore = f.restore(manifest, model, target);
    await restore.load();
    await restore.commit();
    await restore.release();
    assertSameContents(await contentsOf(target), before, 'restored');
  });

  test('that are there already are in the way, or make room', async () => {
    const source = await f.pod('source', model);
    await put(source, 0, 'a', '1');
    const manifest = await f.backup({ [model]: source });
    const target = await f.pod('target', model);
    await put(target, 0, 'mine', '1');
    await put(target, 5, 'mine', '1');
    await expect(f.restore(manifest, model, target).load()).rejects.toThrow('table 0 holds 1 rows');
    const restore = f.restore(manifest, model, target, true);
    await restore.load();
    await restore.commit();
    await restore.release();
    expect([...(await contentsOf(target)).keys()]).toEqual(['0/a']);
    expect(target.heldTables()).toEqual([0]);
  });

  test('of which some expired since stay expired', async () => {
    const source = await f.pod('source', model);
    await put(source, 0, 'soon', '1', Date.now() + 30);
    await put(source, 0, 'later', '1', Date.now() + 1e9);
    const manifest = await f.backup({ [model]: source });
    await new Promise((resolve) => setTimeout(resolve, 40));
    const target = await f.pod('target', model);
    const restore = f.restore(manifest, model, target);
    // As long as it is compared nothing goes.
    expect(await restore.load()).toMatchObject([{ table: 0, rows: 2, expiring: 2, due: 1 }]);
    target.maintain();
    expect(target.tableSize(shadowTables.first).rows).toBe(2);
    await restore.commit();
    target.maintain();
    // An engine on disk may have to read first.
    await expect.poll(() => (target.maintain(), target.tableSize(0).rows)).toBe(1);
    await restore.release();
  });

  test('too much log behind a backup makes the next one a full one', async () => {
    const source = await f.pod('source', model, 1000);
    await put(source, 0, 'a', '1');
    const full = await f.backup({ [model]: source });
    for (let i = 0; i < 100; i++) await put(source, 0, `k${i}`, 'x'.repeat(100));
    const next = await f.backup({ [model]: source }, full);
    expect(next.parts[0]).toMatchObject({
      kind: 'all',
      reason: 'the log since the last backup is kept no more',
    });
    expect(next.parent).toBeUndefined();
  });

  test('a backup that is cancelled holds nothing', async () => {
    const source = await f.pod('source', model);
    await fill(source, 0);
    const { id, backups } = await f.begin({ [model]: source });
    await backups.order({ action: 'cancel', id });
    expect(await ended(backups, id)).toMatchObject({ state: 'cancelled' });
    await backups.order({ action: 'forget', id });
    expect(source.parts.log.keepAfter).toBe(Infinity);
    // The engine takes another export at once.
    await f.backup({ [model]: source });
  });
});
