import { expect, test } from 'vitest';
import { explainStart } from '../src/start.ts';

const failed = (code: string) =>
  new Error('Failed query: insert into api_keys …\nparams: marked', {
    cause: Object.assign(new Error('marked'), { code }),
  });

test.each([
  [failed('ECONNREFUSED'), 'DATABASE_URL: Postgres does not answer (ECONNREFUSED)'],
  [
    failed('42P01'),
    'DATABASE_URL: the tables are missing: run "npx -y pnpm@12 --filter @presign/issuer migrate" first',
  ],
  [failed('28P01'), 'DATABASE_URL: Postgres refuses the login (28P01)'],
  [failed('3D000'), 'DATABASE_URL: Postgres has no database of this name (3D000)'],
  [failed('25006'), 'DATABASE_URL: Postgres is read-only (25006)'],
  [failed('55P03'), 'DATABASE_URL: Postgres does not answer (55P03)'],
  [failed('42501'), 'DATABASE_URL: Postgres refused (42501)'],
  [failed('CONNECTION_CLOSED'), 'DATABASE_URL: Postgres does not answer (CONNECTION_CLOSED)'],
  [
    Object.assign(new Error('listen EADDRINUSE'), { code: 'EADDRINUSE', port: 8787 }),
    'ISSUER_PORT: port 8787 is taken. Stop what listens there, or set another port',
  ],
  [
    Object.assign(new Error('listen EADDRINUSE'), { code: 'EADDRINUSE', port: 8788 }),
    'GATEWAY_PORT: port 8788 is taken. Stop what listens there, or set another port',
  ],
  [
    Object.assign(new Error('listen EACCES'), { code: 'EACCES', syscall: 'listen', port: 8788 }),
    'GATEWAY_PORT: this user may not listen on port 8788. Set another port',
  ],
  [
    Object.assign(new Error('listen'), { code: 'EADDRNOTAVAIL', syscall: 'listen', port: 8787 }),
    'HOST: this machine has no such address to listen on (EADDRNOTAVAIL)',
  ],
  [
    Object.assign(new Error('getaddrinfo'), { code: 'ENOTFOUND', syscall: 'getaddrinfo' }),
    'HOST: this machine has no such address to listen on (ENOTFOUND)',
  ],
  [new Error('REDIS_URL: Redis does not answer'), 'REDIS_URL: Redis does not answer'],
  ['thrown', 'failed to start'],
])('a failed start is explained in one line that quotes no query (%#)', (error, line) => {
  expect(explainStart(error, (port) => (port === 8787 ? 'ISSUER_PORT' : 'GATEWAY_PORT'))).toBe(line);
});

test('a process that does not listen names its database if a host is not found', () => {
  const error = Object.assign(new Error('getaddrinfo'), { code: 'ENOTFOUND', syscall: 'getaddrinfo' });
  expect(explainStart(error)).toBe('DATABASE_URL: Postgres does not answer (ENOTFOUND)');
});
