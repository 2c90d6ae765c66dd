import { keysCommands } from '../../access/redis/commands/keys.ts';
import { listCommands } from '../../access/redis/commands/list.ts';
import { stringCommands } from '../../access/redis/commands/string.ts';
import { testTranscript } from './transcript.ts';

testTranscript(`${import.meta.dirname}/testdata/list.txt`, [
  ...stringCommands,
  ...keysCommands,
  ...listCommands,
]);
