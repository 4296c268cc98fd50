import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readRetention } from '@presign/issuer';
import { archiveParts, ledger } from '@presign/schema/ledger-tables';
import { eq } from 'drizzle-orm';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { addToLedger, fresh, type Reader, row } from '../issuer/ask-usage.ts';
import { rowsIn, type Sweeps, startSweeps } from '../issuer/sweeps.ts';

const { s3Server } = inject('toolchains');

const KEY = { id: 'AKIDMARKED', secret: 'marked/secret+of/the+archive' };
const REGION = 'eu-test-1';
const BUCKET = 'archive.test';

/** A server that knows its own rules of signatures, of checksums and of names. */
describe.skipIf('skipped' in s3Server)('an archive in the bucket of another S3 server', () => {
  const folder = mkdtempSync(join(tmpdir(), 'presign-s3-'));
  const lines: string[] = [];
  const log = pino({ level: 'debug' }, { write: (line: string) => void lines.push(line) });
  let server: ChildProcess;
  let endpoint: string;
  let stack: Stack;
  let sweeps: Sweeps;
  let of: Reader;

  beforeAll(async () => {
    stack = await startStack({ providers: {} });
    const port = await freePort();
    endpoint = `http://127.0.0.1:${port}`;
    // A folder of this server's folder is a bucket.
    mkdirSync(join(folder, 'buckets', BUCKET), { recursive: true });
    const args = ['--port', `127.0.0.1:${port}`, '--region', REGION, 'posix', join(folder, 'buckets')];
    server = spawn('at' in s3Server ? s3Server.at : '', args, {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ROOT_ACCESS_KEY: KEY.id, ROOT_SECRET_KEY: KEY.secret },
    });
    await eventually(() => fetch(endpoint).catch(() => undefined));
  });
  afterAll(async () => {
    const exited = once(server, 'exit');
    server.kill('SIGKILL');
    await exited;
    await stack.close();
    rmSync(folder, { recursive: true });
  });
  beforeEach(async () => {
    lines.length = 0;
    of = await fresh(stack);
    sweeps = await startSweeps(stack);
    return () => sweeps.close();
  });

  const addCalls = async (count: number) => {
    const rows = Array.from({ length: count }, () => row(of));
    await addToLedger(stack, rows);
    return rows.map(({ holdId }) => holdId).sort();
  };
  /** As an operator sets it, with the key in files. */
  const sweep = (changed: Readonly<Record<string, string>> = {}, secret = KEY.secret) => {
    const file = (name: string, text: string) => {
      writeFileSync(join(folder, name), `${text}\n`);
      return join(folder, name);
    };
    const env = {
      LEDGER_KEPT_DAYS: '32',
      ARCHIVE_S3: `s3://${BUCKET}/presign/a`,
      AWS_REGION: REGION,
      AWS_ENDPOINT_URL_S3: endpoint,
      AWS_ACCESS_KEY_ID_FILE: file('key-id', KEY.id),
      AWS_SECRET_ACCESS_KEY_FILE: file('key', secret),
    };
    return sweeps.sweep(readRetention({ ...env, ...changed }), { log });
  };
  const isDone = async () =>
    (await stack.db.$count(ledger, eq(ledger.accountId, of.account))) === 0 &&
    (await stack.db.$count(archiveParts)) === 0;
  const files = () => {
    const at = join(folder, 'buckets', BUCKET, 'presign/a/ledger');
    return readdirSync(at).map((name) => ({ name, bytes: readFileSync(join(at, name)) }));
  };

  test('has each call once, in files identical to those sent', async () => {
    const ids = await addCalls(11_000);
    await sweep();
    await eventually(isDone);
    const kept = files();
    expect(kept.flatMap(({ bytes }) => rowsIn(bytes).map((each) => each['hold_id'])).sort()).toEqual(ids);
    expect(kept.filter(({ name }) => !/^ledger-[\w.-]+\.csv\.gz$/.test(name))).toEqual([]);
  });

  test.each([
    ['with another secret', {}, 'another', '403 SignatureDoesNotMatch'],
    ['for another bucket', { ARCHIVE_S3: 's3://no-such-bucket' }, KEY.secret, '404 NoSuchBucket'],
  ])(
    'gets nothing %s: the log says why, and the calls wait in Postgres',
    async (_name, changed, secret, why) => {
      await addCalls(10);
      const before = files().length;
      const stop = await sweep(changed, secret);
      await eventually(async () => lines.some((line) => line.includes(`S3 answered ${why} to PUT`)));
      await stop();
      expect(files()).toHaveLength(before);
      expect(lines.join()).not.toContain(KEY.secret);
      // Nothing is lost: with the right settings the calls arrive.
      await sweep();
      await eventually(isDone);
    },
  );
});
