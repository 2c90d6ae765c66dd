// The test vectors of docs/pod-protocol.md. UPDATE_VECTORS=1 writes them anew; then the protocol has changed, and needs
// another version.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Arguments } from '../arguments.ts';
import { RowWork } from '../row-work.ts';
import { FrameReader, writeFrame } from './frames.ts';
import { ClientHandshake, type LinkIdentity, ServerHandshake } from './hello.ts';
import {
  Answer,
  AnswerFlag,
  CommandHead,
  Request,
  RowFrame,
  writeCommand,
  writeSession,
  writeWork,
} from './row-messages.ts';
import type { SeriesRows } from '../series/column.ts';
import type { SeriesCache } from '../series/series-cache.ts';
import { BatchWriter } from './series-batch.ts';
import { writeRows } from './series-rows.ts';
import { ValueWriter } from './values.ts';
import { WireWriter } from './wire.ts';

const page = join(import.meta.dirname, '../../docs/pod-protocol.md');
const from = '<!-- vectors -->\n';
const to = '<!-- end of vectors -->';

function frame(type: number, stream: number, write: (writer: WireWriter) => void): Buffer {
  const payload = new WireWriter();
  write(payload);
  const writer = new WireWriter();
  writeFrame(writer, type, stream, payload.view());
  return writer.view();
}

function* handshake(): Generator<[string, Buffer]> {
  const secret = Buffer.from('a secret of the cluster');
  const gateway: LinkIdentity = {
    cluster: 'test',
    node: 'gateway-1',
    incarnation: 7,
    level: 1,
    purpose: 'pods',
  };
  const identity = { ...gateway, node: 'node-1', incarnation: 1_760_000_000_000 };
  const client = new ClientHandshake({
    identity: gateway,
    secret,
    nonce: Buffer.alloc(32, 0xc1),
  });
  const server = new ServerHandshake({ identity, secret, nonce: Buffer.alloc(32, 0x5e) });
  const give = (side: Pick<ClientHandshake, 'received'>, bytes: Buffer): Buffer => {
    let send: Buffer | undefined;
    new FrameReader((type, _stream, buf, start, end) => {
      ({ send } = side.received(type, buf, start, end));
    }).push(bytes);
    return send!;
  };
  yield ['hello of `gateway-1`, cluster `test`, nonce c1…', client.hello];
  const welcome = give(server, client.hello);
  yield ['welcome of `node-1`, nonce 5e…', welcome];
  const proof = give(client, welcome);
  yield ['proof', proof];
  yield ['ready', give(server, proof)];
}

function* vectors(): Generator<[string, Buffer]> {
  yield ['type 16, stream 5, the text `hello`', frame(16, 5, (w) => w.string('hello'))];
  yield* handshake();
  yield* rows();
  yield* series();
}

function* rows(): Generator<[string, Buffer]> {
  const args = new Arguments();
  args.buf = Buffer.from('getkey');
  args.starts.set([0, 3]);
  args.lens.set([3, 3]);
  args.count = 2;
  const head = new CommandHead();
  head.transform = 130;
  yield [
    'requests: session of lane 3 (tenant 1, table 17, tables 16 to 31, RESP3, metered), then command 130 `get key`',
    frame(RowFrame.requests, 0, (w) => {
      writeSession(w, 3, {
        tenant: 1,
        table: 17,
        first: 16,
        count: 16,
        version: 3,
        epoch: 0,
        isMetered: true,
      });
      w.u8(Request.command);
      w.varint(3);
      writeCommand(w, head, args);
    }),
  ];
  const values = new ValueWriter();
  values.u8(Answer.values);
  values.varint(3);
  values.u8(AnswerFlag.hasWork);
  values.array(4);
  values.text('value');
  values.integer(-300);
  values.nil();
  values.double(1.5);
  writeWork(values, Object.assign(new RowWork(), { lookups: 1, readBytes: 200 }));
  yield [
    'answers: to lane 3 an array of `value`, -300, nil and 1.5, with the work of 1 lookup and 200 bytes read',
    frame(RowFrame.answers, 0, (w) => w.raw(values.buf, 0, values.pos)),
  ];
}

/** The places of a cache with one series. */
const oneSeries: SeriesCache = {
  generation: 0,
  size: 1,
  keys: () => Buffer.from('cpu,host=a'),
  keyStart: () => 0,
  keyEnd: () => 10,
  keyHash: () => 0,
};

function* series(): Generator<[string, Buffer]> {
  const batch = new BatchWriter();
  const column = { wide: undefined, present: undefined, count: 2 } as const;
  batch.begin({
    cache: oneSeries,
    generation: 0,
    baseSeconds: 1_600_000_000,
    rows: 2,
    groups: [
      {
        measurement: 'cpu',
        rows: 2,
        series: Uint32Array.of(0, 0),
        times: Float64Array.of(0, 1e9),
        columns: [
          { ...column, field: 'v', type: 'float', numbers: Float64Array.of(1.5, -2) },
          { ...column, field: 's', type: 'string', numbers: Float64Array.of(0, 1) },
        ],
      },
    ],
    text: Buffer.from('onetwo'),
    textEnds: Uint32Array.of(3, 6),
  });
  yield [
    'write of group 17, tenant 3, within 5,000 ms: to `db`, default policy, two points of `cpu,host=a`, a second apart, with `v` 1.5 and -2, `s` `one` and `two`',
    frame(35, 9, (w) => {
      // As contracts/series-protocol/ has heads.
      w.u8(1);
      for (const number of [17, 3, 0, 5000]) w.varint(number);
      w.string('db');
      w.string('');
      batch.write(w, 1e6);
    }),
  ];
  const numbers = Float64Array.of(1.5, -2);
  const read = { type: 'float', numbers, wide: undefined, texts: undefined } as const;
  const rows: SeriesRows = {
    kind: 'rows',
    base: 1_600_000_000,
    times: Float64Array.of(0, 1e9),
    count: 2,
    columns: [{ ...read, present: Uint8Array.of(1, 0) }, undefined],
  };
  yield [
    'pieces: cursor 4 has two rows of two fields, of which the second has no value, and the first none in the second row; then it ends',
    frame(41, 9, (w) => {
      w.varint(4);
      w.u8(1);
      const at = w.pos;
      w.u32(0);
      writeRows(w, rows, 0, 2);
      w.buf.writeUInt32LE(w.pos - at - 4, at);
      w.varint(4);
      w.u8(3);
      w.u32(0);
    }),
  ];
}

test('the page has the bytes that this build sends', () => {
  const rows = [...vectors()].map(
    ([name, bytes]) => `- ${name}\n\n  \`${bytes.toString('hex')}\`\n`,
  );
  const text = `\n${rows.join('')}\n`;
  const old = readFileSync(page, 'utf8');
  const start = old.indexOf(from) + from.length;
  const end = old.indexOf(to);
  if (process.env['UPDATE_VECTORS'] === '1') {
    writeFileSync(page, old.slice(0, start) + text + old.slice(end));
    return;
  }
  expect(old.slice(start, end)).toBe(text);
});
