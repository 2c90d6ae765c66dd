// RocksDB's own db_bench, as a second peer of the kv bench.

import { output } from './output.ts';
import {
  blockBytes,
  blockCacheBytes,
  keyBytes,
  maxFileBytes,
  rowCacheBytes,
  writeBufferBytes,
} from './kv-subjects.ts';

interface DbBenchRun {
  directory: string;
  benchmarks: readonly ('fillseq' | 'filluniquerandom' | 'readrandom')[];
  records: number;
  reads: number;
  valueBytes: number;
}

/** Operations a second, in the order of `benchmarks`. */
export async function runDbBench(program: string, run: DbBenchRun): Promise<number[]> {
  const text = await output(program, [
    `--db=${run.directory}`,
    `--benchmarks=${run.benchmarks.join(',')}`,
    `--num=${run.records}`,
    `--reads=${run.reads}`,
    `--key_size=${keyBytes}`,
    `--value_size=${run.valueBytes}`,
    `--cache_size=${blockCacheBytes + rowCacheBytes}`,
    `--write_buffer_size=${writeBufferBytes}`,
    `--target_file_size_base=${maxFileBytes}`,
    `--block_size=${blockBytes}`,
    ...['--compression_type=none', '--sync=0', '--threads=1', '--seed=1'],
  ]);
  return run.benchmarks.map((name) => {
    const line = new RegExp(`${name}\\s*:\\s+[\\d.]+ micros/op (\\d+) ops/sec`).exec(text);
    if (line === null) throw new Error(`db_bench said: ${text}`);
    return Number(line[1]);
  });
}
