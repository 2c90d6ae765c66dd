import { describe, expect, test } from 'vitest';
import { type DetectorOptions, FaultDetector, type Probe, type Served } from './fault-detector.ts';

const good: Probe = { ok: true, latencyMs: 1 };
const failed: Probe = { ok: false, latencyMs: 1000 };
const served: Served = { requests: 100, errors: 0, corrupt: 0, p99Ms: 2 };

/** A detector that knows a healthy pod 1; time goes on from 10 s. */
function known(options: DetectorOptions = {}): FaultDetector {
  const detector = new FaultDetector(options);
  for (let now = 0; now < 10_000; now += 1000) {
    detector.probed(1, good, now);
    detector.served(1, served, now);
  }
  return detector;
}

describe('collectors suspect', () => {
  test.each([
    ['two failed probes in a row', [failed, failed], 'failing'],
    [
      'two slow ones',
      [
        { ...good, latencyMs: 6 },
        { ...good, latencyMs: 7 },
      ],
      'slow',
    ],
    ['one wrong checksum', [{ ...good, isCorrupt: true }], 'corrupt'],
    ['one failure and not again', [failed, good, failed], undefined],
    [
      'a little more latency',
      [
        { ...good, latencyMs: 4 },
        { ...good, latencyMs: 4 },
      ],
      undefined,
    ],
  ] as const)('%s', (_what, probes, symptom) => {
    const detector = known({ passive: false });
    probes.forEach((probe, i) => detector.probed(1, probe, 10_000 + i * 1000));
    expect(detector.due(12_500).map((each) => each.symptom)).toEqual(symptom ? [symptom] : []);
  });

  test('a collector that is silent', () => {
    const detector = known({ passive: false });
    expect(detector.due(11_900)).toEqual([]);
    expect(detector.due(12_000)).toEqual([{ pod: 1, symptom: 'silent', since: 12_000 }]);
  });
});

describe('gateways suspect', () => {
  test.each([
    ['errors above a share of the window', [{ ...served, errors: 30 }], 'failing'],
    ['few errors', [{ ...served, errors: 20 }], undefined],
    ['slow requests', [{ ...served, p99Ms: 20 }], 'slow'],
    ['one wrong checksum', [{ ...served, errors: 1, corrupt: 1 }], 'corrupt'],
    [
      'two keep-alives without an answer',
      Array.from({ length: 2 }, () => ({ requests: 1, errors: 1, corrupt: 0, p99Ms: 0 })),
      'failing',
    ],
    [
      'one keep-alive without an answer',
      [{ requests: 1, errors: 1, corrupt: 0, p99Ms: 0 }],
      undefined,
    ],
  ] as const)('%s', (_what, reports, symptom) => {
    const detector = known({ active: false });
    reports.forEach((report) => detector.served(1, report, 10_000));
    expect(detector.due(10_000).map((each) => each.symptom)).toEqual(symptom ? [symptom] : []);
  });

  test('errors leave the window', () => {
    const detector = known({ active: false });
    detector.served(1, { ...served, errors: 20 }, 10_000);
    detector.served(1, { ...served, errors: 15 }, 16_000);
    detector.served(1, served, 17_000);
    detector.served(1, served, 18_000);
    expect(detector.due(18_000).map(({ since }) => since)).toEqual([16_000]);
  });
});

describe('a suspicion', () => {
  test('is confirmed by two of three nodes', () => {
    const detector = known();
    const bad = [failed, failed];
    expect(detector.confirmed(1, [bad, bad, [good, good]], 10_000)).toBe(true);
    expect(detector.confirmed(1, [bad, [failed, good], [good, failed]], 10_000)).toBe(false);
    expect(detector.confirmed(1, [[{ ...good, latencyMs: 9 }], bad, []], 10_000)).toBe(true);
  });

  test('that is not confirmed rests for a while', () => {
    const detector = known({ passive: false });
    const suspect = (now: number): number => {
      detector.probed(1, failed, now);
      detector.probed(1, failed, now);
      return detector.due(now).length;
    };
    expect(suspect(10_000)).toBe(1);
    detector.confirmed(1, [], 10_000);
    expect(suspect(11_000)).toBe(0);
    expect(suspect(12_000)).toBe(1);
    detector.forget(1);
    expect(detector.due(20_000)).toEqual([]);
  });
});
