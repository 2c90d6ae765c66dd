// Single writes that a gateway sends again, on a pod that takes no more of them.

import { afterEach, expect, test } from 'vitest';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Engine } from '../engines/engine.ts';
import { KvEngine } from '../engines/kv/kv-engine.ts';
import { MemoryEngine } from '../engines/memory/memory-engine.ts';
import { Action } from '../universal-row/command.ts';
import { CommandError } from '../universal-row/errors.ts';
import { once } from '../universal-row/once.ts';
import { copyValues, ValueWriter } from '../universal-row/protocol/values.ts';
import { WireReader } from '../universal-row/protocol/wire.ts';
import { FlowRegistry } from './flows/flow-registry.ts';
import type { CommandContext } from './flows/command-flows.ts';
import { PodFixture, TextReply } from './pod-fixture.ts';

let f: PodFixture;
let directory = '';
afterEach(async () => {
  await f.pod.close();
  if (directory !== '') rmSync(directory, { recursive: true, force: true });
  directory = '';
});

async function send(line: string, sequence: number): Promise<string> {
  const command = f.command(line);
  const write = { node: 3, incarnation: 1, number: sequence * 65_536, first: 0 };
  command.transform = once(command.transform, write);
  const reply = new ValueWriter(256);
  const own = await f.pod.execute(command, reply);
  const { buf, pos } = (own ?? reply) as ValueWriter;
  const text = new TextReply();
  copyValues(new WireReader(buf, 0, pos), text);
  return text.toString();
}

/** Ways in which a pod refuses writes, by the refusal. */
const refusals: Record<string, () => void> = {
  READONLY: () => {
    f.tables.get(0)!.readOnly = true;
  },
  'OOM over quota': () => {
    const nothing = (): { bytes: number; rows: number } => ({ bytes: 0, rows: 0 });
    f.tables.get(0)!.quota = { refusal: () => 'OOM over quota', excess: nothing, freed() {} };
  },
  'OOM command not allowed': () => {
    f.pod.maxMemoryBytes = 1;
    f.pod.endTick();
  },
};

const engines: Record<string, () => Engine> = {
  memory: () => new MemoryEngine(),
  kv: () => {
    directory = mkdtempSync(join(tmpdir(), 'polyrow-once-'));
    return new KvEngine({ directory });
  },
};

for (const [model, engine] of Object.entries(engines)) {
  for (const [text, begin] of Object.entries(refusals)) {
    test(`${model}: a write that was done is answered as before where others are refused: ${text}`, async () => {
      const own = engine();
      await own.open();
      f = await PodFixture.open({ engine: own });
      expect(await send('put a 1', 1)).toBe('OK');
      await f.safe();
      begin();
      expect(await send('put a 2', 2)).toContain(text);
      expect(await send('put a 1', 1)).toBe('OK');
      expect(f.run('get a')).toBe('1');
    });
  }
}

test('on a full disk, too', async () => {
  f = await PodFixture.open({ capacityBytes: 4 << 20, ballastBytes: 64 * 1024 });
  expect(await send('put a 1', 1)).toBe('OK');
  await f.safe();
  f.disk.capacityBytes = f.disk.usedBytes();
  for (let i = 0; f.pod.writeFailure === undefined && i < 100; i++) {
    f.run(`put big${i} ${'x'.repeat(20_000)}`);
    await f.safe();
  }
  expect(await send('put a 2', 2)).toContain('MISCONF');
  expect(await send('put a 1', 1)).toBe('OK');
});

test('where a task of a flow refuses it, too', async () => {
  const outcomes: string[] = [];
  let refuses = false;
  const actions = [Action.put];
  const flows = new FlowRegistry<CommandContext>()
    .register(
      {
        name: 'refuse',
        run: () => {
          if (refuses) throw new CommandError('ERR refused');
        },
      },
      { before: 'admit', actions },
    )
    .register(
      { name: 'audit', run: ({ outcome }) => void outcomes.push(outcome!.kind) },
      { after: 'reply', actions },
    );
  f = await PodFixture.open({ flows });
  expect(await send('put a 1', 1)).toBe('OK');
  refuses = true;
  expect(await send('put a 2', 2)).toBe('(error) ERR refused');
  expect(await send('put a 1', 1)).toBe('OK');
  expect(outcomes).toEqual(['done', 'refused', 'done']);
});
