// Which implementation each part of a shard has.

import { openTsmFile } from './file/tsm-file-reader.ts';
import { TsmFileWriter } from './file/tsm-file-writer.ts';
import { MemoryHead } from './head/memory-head.ts';
import type { PagePool } from './head/page-pool.ts';
import { openSeriesIndex } from './index/series-index.ts';
import type { ShardParts } from './shard/shard-types.ts';

export function shardParts(pool: PagePool): ShardParts {
  return {
    createHead: () => new MemoryHead(pool),
    openIndex: openSeriesIndex,
    createFile: (disk, path) => new TsmFileWriter(disk, path),
    openFile: (disk, path) => openTsmFile(disk, path),
  };
}
