import { keysCommands } from '../../access/redis/commands/keys.ts';
import { streamCommands } from '../../access/redis/commands/stream.ts';
import { stringCommands } from '../../access/redis/commands/string.ts';
import { testTranscript } from './transcript.ts';

testTranscript(`${import.meta.dirname}/testdata/stream.txt`, [
  ...stringCommands,
  ...keysCommands,
  ...streamCommands,
]);
