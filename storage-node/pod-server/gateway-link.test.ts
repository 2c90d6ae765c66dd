import { expect, test } from 'vitest';
import type { ClusterLink, LinkHandler } from '../../cluster-links/cluster-link.ts';
import { RowFrame } from '../../universal-row/protocol/row-messages.ts';
import { WireError } from '../../universal-row/protocol/wire.ts';
import { PodServer } from './pod-server.ts';

const noRequest = Buffer.from([99, 0]);

/** The pods' end of a link whose socket still holds so many bytes. */
function linked() {
  const pods = new PodServer({
    podOf: () => undefined,
    answer: () => undefined,
    report: () => {},
    failed: (error) => {
      throw error;
    },
  });
  const ends: (Error | undefined)[] = [];
  const socket = { unsentBytes: 17 * 1024 * 1024 };
  const link = {
    peer: { cluster: 'c', node: '1', incarnation: 1, purpose: 'pods', level: 1 },
    send: () => true,
    pause: () => {},
    get unsentBytes() {
      return socket.unsentBytes;
    },
    close: (error?: Error) => {
      ends.push(error);
      handler.closed(error);
    },
  };
  const handler: LinkHandler = pods.open(link as unknown as ClusterLink);
  return { handler, ends, socket };
}

test.each(['its answers have left', 'a tick has ended'])(
  'a frame of no sense that had to wait until %s ends its link, and nothing else',
  async (until) => {
    const { handler, ends, socket } = linked();
    handler.frame(RowFrame.requests, 0, noRequest, 0, noRequest.length);
    handler.frame(RowFrame.requests, 0, noRequest, 0, noRequest.length);
    expect(ends).toEqual([]);
    socket.unsentBytes = 0;
    if (until === 'its answers have left') handler.drained();
    await expect.poll(() => ends.length).toBe(1);
    expect(ends[0]).toBeInstanceOf(WireError);
  },
);
