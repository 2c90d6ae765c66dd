import { describe, expect, test } from 'vitest';
import {
  TablePropertyError,
  defaultTableProperties,
  withTableProperties,
} from './table-properties.ts';

describe('setting properties', () => {
  test('changes what is named and keeps the rest', () => {
    const first = withTableProperties({ readOnly: true, quotaMode: 'hard' });
    const second = withTableProperties({ readOnly: false, writePriority: 'low' }, first);
    expect(second).toEqual({
      ...defaultTableProperties,
      quotaMode: 'hard',
      writePriority: 'low',
    });
    expect(first.readOnly).toBe(true);
    expect(withTableProperties({ cacheBypass: undefined })).toEqual(defaultTableProperties);
  });

  test('takes consistency by name or with its bounds', () => {
    const check = (consistency: unknown, expected: unknown) =>
      expect(withTableProperties({ consistency }).consistency).toEqual(expected);
    check('eventual', { kind: 'eventual' });
    check({ kind: 'strong' }, { kind: 'strong' });
    check('lease', { kind: 'lease' });
    check('bounded', { kind: 'bounded', maxStalenessMs: 5000, maxLagEntries: 10_000 });
    check(
      { kind: 'bounded', maxLagEntries: 5 },
      { kind: 'bounded', maxStalenessMs: 5000, maxLagEntries: 5 },
    );
  });

  test('its own result can be given back to it', () => {
    const properties = withTableProperties({ consistency: 'bounded', maxRowBytes: 7 });
    const again = JSON.parse(JSON.stringify(properties)) as unknown;
    expect(withTableProperties(again)).toEqual(properties);
  });

  test('says what is wrong', () => {
    const check = (changes: unknown, message: string) => {
      expect(() => withTableProperties(changes)).toThrow(TablePropertyError);
      expect(() => withTableProperties(changes)).toThrow(message);
    };
    check(null, 'table properties: expected an object, got null');
    check([], 'table properties: expected an object, got []');
    check({ readonly: true }, 'readonly: no such table property (there are model, readOnly,');
    check({ constructor: 1 }, 'constructor: no such table property');
    check({ model: '' }, 'model: expected the name of an engine, got ""');
    check({ readOnly: 'yes' }, 'readOnly: expected true or false, got "yes"');
    check({ ttlDefaultMs: -1 }, 'ttlDefaultMs: expected a whole number, 0 or more, got -1');
    check({ ttlDefaultMs: 1.5 }, 'ttlDefaultMs: expected a whole number, 0 or more, got 1.5');
    check({ maxRowBytes: 5n }, 'maxRowBytes: expected a whole number, 0 or more, got 5n');
    check({ shardingKind: 'list' }, 'shardingKind: expected one of hash, range, got "list"');
    check({ writePriority: 1 }, 'writePriority: expected one of low, normal, high, got 1');
    for (const partitions of [0, 1.5, 16_385, '4']) {
      check({ partitions }, 'partitions: expected a whole number from 1 to 1024, got ');
    }
    check({ quotaMode: null }, 'quotaMode: expected one of server, hard, stacked, got null');
    check({ consistency: 'weak' }, 'consistency: expected strong, lease, eventual or bounded');
    check(
      { consistency: { kind: 'strong', x: 1 } },
      'consistency: expected strong, lease, eventual',
    );
    check(
      { consistency: { kind: 'bounded', maxStalenessMs: '5' } },
      'consistency.maxStalenessMs: expected a whole number, 0 or more, got "5"',
    );
    check(
      { consistency: { kind: 'bounded', maxStaleness: 5 } },
      'consistency: expected maxStalenessMs, maxLagEntries, got "maxStaleness"',
    );
  });
});
