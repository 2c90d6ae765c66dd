import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatDuration, formatGoDuration, parseDuration } from './durations.ts';
import { formatTime, looksLikeTime, parseTimeLiteral } from './time-literal.ts';
import { isTimeZone, zoneOffset } from './time-zone.ts';

const second = 1_000_000_000n;

test.each<[string, bigint | undefined]>([
  ['1970-01-01', 0n],
  ['1970-01-02', 86_400n * second],
  ['1970-01-01 00:00:01', second],
  ['1970-01-01 0:00:01.5', second + 500_000_000n],
  ['1970-01-01T00:00:01Z', second],
  ['1970-01-01T01:00:01.000000001+01:00', second + 1n],
  ['1969-12-31T23:59:59Z', -second],
  ['2016-02-29', 1_456_704_000n * second],
  ['2015-02-29', undefined],
  ['2016-13-01', undefined],
  ['1970-01-01 00:00:60', undefined],
  ['1970-01-01 24:00:00', undefined],
  ['1970-01-01 00:00', undefined],
  ['1970-01-01 00:00:01Z', undefined],
  ['1970-01-01T00:00:01', undefined],
  ['1970-01-01 00:00:00.9999999999', undefined],
  ['x', undefined],
])('%s', (text, expected) => expect(parseTimeLiteral(text)).toBe(expected));

test('what looks like a time is meant as one', () => {
  expect(looksLikeTime('2016-13-01')).toBe(true);
  expect(looksLikeTime('2016-01-01 nonsense')).toBe(true);
  expect(looksLikeTime('2016')).toBe(false);
  expect(looksLikeTime('x2016-01-01')).toBe(false);
});

test('times without an offset are local', () => {
  const zone = 'Europe/Berlin';
  expect(parseTimeLiteral('2020-01-01', zone)).toBe(parseTimeLiteral('2019-12-31T23:00:00Z'));
  expect(parseTimeLiteral('2020-07-01 12:00:00', zone)).toBe(
    parseTimeLiteral('2020-07-01T10:00:00Z'),
  );
  expect(parseTimeLiteral('2020-07-01T12:00:00Z', zone)).toBe(
    parseTimeLiteral('2020-07-01T12:00:00Z'),
  );
  // Either side of the change of clocks.
  expect(parseTimeLiteral('2020-03-29 01:59:59', zone)).toBe(
    parseTimeLiteral('2020-03-29T00:59:59Z'),
  );
  expect(parseTimeLiteral('2020-03-29 03:00:00', zone)).toBe(
    parseTimeLiteral('2020-03-29T01:00:00Z'),
  );
  expect(parseTimeLiteral('2020-10-25 03:00:00', zone)).toBe(
    parseTimeLiteral('2020-10-25T02:00:00Z'),
  );
});

test('zones', () => {
  expect(['UTC', 'America/New_York'].every(isTimeZone)).toBe(true);
  expect(['', 'Nowhere/Else', '+01:00'].some(isTimeZone)).toBe(false);
  expect(zoneOffset('America/New_York', 0)).toBe(-5 * 3600);
  expect(zoneOffset('Asia/Kolkata', 1_600_000_000)).toBe(5.5 * 3600);
});

test('a printed time is the same time', () => {
  const times = fc.bigInt(-9_223_372_036_854_775_806n, 9_223_372_036_854_775_806n);
  fc.assert(
    fc.property(times, (time) => {
      expect(parseTimeLiteral(formatTime(time))).toBe(time);
    }),
  );
  expect(formatTime(1_500_000_000n)).toBe('1970-01-01T00:00:01.5Z');
});

test('durations', () => {
  const durations = fc.bigInt(-(2n ** 62n), 2n ** 62n);
  fc.assert(
    fc.property(durations, (duration) => {
      expect(parseDuration(formatDuration(duration))).toBe(duration);
    }),
  );
  const go = (text: string): string => formatGoDuration(parseDuration(text));
  expect(['0s', '1w', '90m', '1h30m5s', '1500ms', '680u', '1500u', '7ns'].map(go)).toEqual([
    '0s',
    '168h0m0s',
    '1h30m0s',
    '1h30m5s',
    '1.5s',
    '680µs',
    '1.5ms',
    '7ns',
  ]);
});
