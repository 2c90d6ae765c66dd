import { expect, test } from 'vitest';
import type { MetricSample } from '../monitor/metric-sample.ts';
import { MetricsPage } from './metrics-page.ts';

function sample(labels: Record<string, string>, value: number): MetricSample {
  return { name: 'polyrow_pods', help: 'Pods.', type: 'gauge', value, labels };
}

test('samples of a metric may have different labels', async () => {
  const samples = [sample({ model: 'kv' }, 1), sample({ model: 'tsm', partition: '2' }, 2)];
  const page = new MetricsPage();
  page.addSource(async () => samples);
  const lines = async (): Promise<string[]> => {
    const { text } = await page.page();
    return text.split('\n').filter((line) => line.startsWith('polyrow_pods'));
  };
  expect(await lines()).toEqual([
    'polyrow_pods{model="kv"} 1',
    'polyrow_pods{model="tsm",partition="2"} 2',
  ]);
  // A label that comes later.
  samples.push(sample({ model: 'tsm', group: '17' }, 3));
  expect(await lines()).toEqual([
    'polyrow_pods{model="kv"} 1',
    'polyrow_pods{model="tsm",partition="2"} 2',
    'polyrow_pods{model="tsm",group="17"} 3',
  ]);
});
