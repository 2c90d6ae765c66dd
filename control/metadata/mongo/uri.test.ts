import { expect, test } from 'vitest';
import { databaseOf, shownUri } from './uri.ts';

test('the database is that of the URI, or polyrow', () => {
  const check = (uri: string, name: string) => expect(databaseOf(uri)).toBe(name);
  check('mongodb://localhost', 'polyrow');
  check('mongodb://localhost/', 'polyrow');
  check('mongodb://localhost/?replicaSet=rs', 'polyrow');
  check('mongodb://u:p@a:1,b:2/meta?replicaSet=rs', 'meta');
  check('mongodb+srv://cluster.example/a%20b', 'a b');
});

test('nothing of user, password and options is shown', () => {
  const check = (uri: string, shown: string) => expect(shownUri(uri)).toBe(shown);
  check('mongodb://localhost', 'mongodb://localhost');
  check('mongodb://u:p@a:1,b:2/meta?replicaSet=rs', 'mongodb://a:1,b:2');
  check('mongodb+srv://u:p@cluster.example/x?authSource=u', 'mongodb+srv://cluster.example');
  check('mongodb://u:p@ss/w?rd@host/x', 'mongodb://host');
  check('mongodb://u:p/w@host', 'mongodb://host');
});
