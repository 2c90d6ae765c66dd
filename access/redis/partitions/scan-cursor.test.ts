import { expect, test } from 'vitest';
import { scanCursor, scanPlace } from './scan-cursor.ts';

const hashed = (): boolean => true;
const numbered = (): boolean => false;
const slots = [0, 1, 12_345, 16_383];

test('a cursor leads to where it was made', () => {
  for (const slot of slots) {
    for (const epoch of [0, 63, 64, 1000]) {
      const rows = scanCursor(epoch, { slot, cursor: 2 ** 32 - 1 }, false);
      expect(scanPlace(rows, epoch, numbered)).toEqual({ slot, cursor: 2 ** 32 - 1 });
      const hash = scanCursor(epoch, { slot, cursor: 2 ** 48 - 1 }, true);
      expect(scanPlace(hash, epoch, hashed)).toEqual({ slot, cursor: 2 ** 48 - 65_536 });
      for (const place of [1, 2 ** 32 - 1]) {
        const cursor = scanCursor(epoch, { slot, cursor: 2 ** 48 + place }, true);
        expect(cursor).toBeLessThan(2 ** 53);
        expect(scanPlace(cursor, epoch, hashed)).toEqual({ slot, cursor: 2 ** 48 + place });
        // Of another map, or an engine that remembers nothing: the walk begins again.
        expect(scanPlace(cursor, epoch + 1, hashed)).toEqual({ slot, cursor: 0 });
        expect(scanPlace(cursor, epoch, numbered)).toEqual({ slot, cursor: 0 });
      }
    }
  }
});
