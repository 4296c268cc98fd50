import { expect, test } from 'vitest';
import { explainStart } from '../src/explain-start.ts';

const failed = (code: string) =>
  new Error('Failed query: insert into api_keys …\nparams: marked', {
    cause: Object.assign(new Error('marked'), { code }),
  });

test.each([
  [failed('ECONNREFUSED'), 'DATABASE_URL: Postgres does not answer (ECONNREFUSED)'],
  [failed('42P01'), 'DATABASE_URL: the tables are missing, run the step "migrate" first'],
  [failed('28P01'), 'DATABASE_URL: Postgres refused (28P01)'],
  [failed('CONNECTION_CLOSED'), 'DATABASE_URL: Postgres does not answer (CONNECTION_CLOSED)'],
  [
    Object.assign(new Error('listen EADDRINUSE'), { code: 'EADDRINUSE', port: 8787 }),
    'ISSUER_PORT: port 8787 is taken',
  ],
  [new Error('REDIS_URL: Redis does not answer'), 'REDIS_URL: Redis does not answer'],
  ['thrown', 'failed to start'],
])('a start that failed is explained in one line that quotes no query (%#)', (error, line) => {
  expect(explainStart(error)).toBe(line);
});
