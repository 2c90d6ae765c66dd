import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FrameReader } from './frames.ts';
import {
  ClientHandshake,
  HelloError,
  type HandshakeStep,
  joinPurpose,
  type LinkIdentity,
  ServerHandshake,
} from './hello.ts';
import { WireError } from './wire.ts';

const gateway: LinkIdentity = {
  cluster: 'test',
  node: 'gateway-1',
  incarnation: 7,
  level: 1,
  purpose: 'pods',
};
const node: LinkIdentity = { ...gateway, node: 'node-1', incarnation: 1_760_000_000_000 };
const secret = Buffer.from('a secret of the cluster');

type Side = { received: ClientHandshake['received'] };

/** Gives the frames of `bytes` to one side; the last step. */
function give(side: Side, bytes: Buffer): HandshakeStep {
  let step: HandshakeStep = {};
  const reader = new FrameReader((type, _stream, buf, start, end) => {
    step = side.received(type, buf, start, end);
  });
  reader.push(bytes);
  return step;
}

interface Pair {
  client: ClientHandshake;
  server: ServerHandshake;
}

function pair(
  client: LinkIdentity = gateway,
  server: LinkIdentity = node,
  clientSecret: Buffer = secret,
  serverSecret: Buffer = secret,
): Pair {
  return {
    client: new ClientHandshake({
      identity: client,
      secret: clientSecret,
      nonce: Buffer.alloc(32, 0xc1),
    }),
    server: new ServerHandshake({
      identity: server,
      secret: serverSecret,
      nonce: Buffer.alloc(32, 0x5e),
    }),
  };
}

test('both sides learn who the other one is', () => {
  const { client, server } = pair();
  const welcome = give(server, client.hello);
  expect(welcome.peer).toBeUndefined();
  const proof = give(client, welcome.send!);
  expect(proof.peer).toBeUndefined();
  const ready = give(server, proof.send!);
  expect(ready.peer).toEqual({ ...gateway, version: 1 });
  expect(give(client, ready.send!).peer).toEqual({ ...node, version: 1 });
});

describe('who does not know the secret', () => {
  const other = Buffer.from('another secret');

  test('is refused by the node', () => {
    const { client, server } = pair(gateway, node, secret, secret);
    const imposter = pair(gateway, node, other, other);
    // One that does not check the node's proof, and makes up its own.
    const welcome = give(server, client.hello).send!;
    const its = give(imposter.client, give(imposter.server, imposter.client.hello).send!).send!;
    expect(welcome).toBeDefined();
    expect(() => give(server, its)).toThrow(HelloError);
  });

  test('is no node for a gateway', () => {
    const { client, server } = pair(gateway, node, secret, other);
    const welcome = give(server, client.hello).send!;
    expect(() => give(client, welcome)).toThrow(HelloError);
  });

  test('cannot use what it heard on another link', () => {
    const first = pair();
    const proof = give(first.client, give(first.server, first.client.hello).send!).send!;
    const again = new ServerHandshake({ identity: node, secret, nonce: Buffer.alloc(32, 0x77) });
    give(again, first.client.hello);
    expect(() => give(again, proof)).toThrow(HelloError);
  });

  test('cannot have the proof of a node made for it', () => {
    const { client, server } = pair();
    const welcome = give(server, client.hello).send!;
    const echoed = Buffer.from(welcome.subarray(welcome.length - 32));
    expect(() => server.received(3, echoed, 0, echoed.length)).toThrow(HelloError);
  });
});

test('a link is within one cluster', () => {
  const { client, server } = pair({ ...gateway, cluster: 'production' });
  expect(() => give(server, client.hello)).toThrow('another cluster');
});

describe('who asks to be taken into a cluster', () => {
  const stranger = { ...gateway, cluster: '', node: '', purpose: joinPurpose };

  test('is told its name', () => {
    const { client, server } = pair(stranger);
    const { send, peer: seen } = give(server, give(client, give(server, client.hello).send!).send!);
    expect(seen).toMatchObject({ cluster: '', node: '', purpose: joinPurpose });
    expect(give(client, send!).peer).toMatchObject({ cluster: 'test', node: 'node-1' });
  });

  test('must know the secret', () => {
    const { client, server } = pair(stranger, node, Buffer.from('another secret altogether'));
    expect(() => give(client, give(server, client.hello).send!)).toThrow('the secret');
  });

  test.each([
    ['for something else', { ...stranger, purpose: 'pods' }],
    ['of another cluster', { ...stranger, cluster: 'production' }],
  ])('has no link %s', (_what, identity) => {
    const { client, server } = pair(identity);
    expect(() => give(server, client.hello)).toThrow('another cluster');
  });
});

test('whatever is changed on the way, no link comes of it', () => {
  const { client, server } = pair();
  const welcome = give(server, client.hello).send!;
  const proof = give(client, welcome).send!;
  const anyChange = fc.record({
    message: fc.constantFrom('hello', 'welcome', 'proof'),
    at: fc.nat(),
    bit: fc.nat(7),
  });
  fc.assert(
    fc.property(anyChange, ({ message, at, bit }) => {
      // Beyond the checksum: altered by an attacker who recomputes it.
      const changed = (bytes: Buffer): Buffer => {
        const payload = Buffer.from(bytes.subarray(16));
        payload[at % payload.length]! ^= 1 << bit;
        return payload;
      };
      const fresh = pair();
      const run = (): unknown => {
        const said = message === 'hello' ? changed(client.hello) : client.hello.subarray(16);
        const step = fresh.server.received(1, said, 0, said.length);
        const back = message === 'welcome' ? changed(step.send!) : step.send!.subarray(16);
        const own = fresh.client.received(2, back, 0, back.length);
        const last = message === 'proof' ? changed(proof) : own.send!.subarray(16);
        return fresh.server.received(3, last, 0, last.length).peer;
      };
      let error: unknown;
      try {
        run();
      } catch (thrown) {
        error = thrown;
      }
      expect(error instanceof HelloError || error instanceof WireError).toBe(true);
    }),
  );
});

test('random messages are refused', () => {
  fc.assert(
    fc.property(fc.nat(8), fc.uint8Array({ maxLength: 300 }), (type, bytes) => {
      const { client, server } = pair();
      const buf = Buffer.from(bytes);
      for (const side of [client, server]) {
        let error: unknown;
        try {
          side.received(type, buf, 0, buf.length);
        } catch (thrown) {
          error = thrown;
        }
        expect(error instanceof HelloError || error instanceof WireError).toBe(true);
      }
    }),
  );
});
