import { archiveParts, ledger } from '@presign/schema/ledger-tables';
import { serveMetrics } from '@presign/service/metrics';
import { eq } from 'drizzle-orm';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { scrape } from '../harness/scrape.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { newCertificate, startProxy, startTlsUpstream } from '../harness/tls.ts';
import { least } from './ask.ts';
import { addToLedger, fresh, type LedgerRow, type Reader, row } from './ask-usage.ts';
import { S3_KEY, type S3Server, s3At, startS3 } from './s3-server.ts';
import { rowsIn, type Sweeps, startSweeps } from './sweeps.ts';

let stack: Stack;
let s3: S3Server;
let sweeps: Sweeps;
let of: Reader;
const lines: string[] = [];
const log = pino({ level: 'debug' }, { write: (line: string) => void lines.push(line) });

beforeAll(async () => {
  stack = await startStack({ providers: {} });
});
afterAll(() => stack.close());
beforeEach(async () => {
  await stack.db.delete(ledger);
  await stack.db.delete(archiveParts);
  lines.length = 0;
  of = await fresh(stack);
  s3 = await startS3();
  sweeps = await startSweeps(stack);
});
afterEach(async () => {
  await sweeps.close();
  await s3.close();
});

async function addCalls(count: number, fields: Partial<LedgerRow> = {}): Promise<string[]> {
  const rows = Array.from({ length: count }, () => row(of, fields));
  await addToLedger(stack, rows);
  return rows.map(({ holdId }) => holdId).sort();
}
const sweep = (endpoint = s3.endpoint, changed: Parameters<Sweeps['sweep']>[1] = {}) =>
  sweeps.sweep({ ledgerDays: 32, archive: s3At(endpoint) }, { log, ...changed });
const left = () => stack.db.$count(ledger, eq(ledger.accountId, of.account));
const waiting = () => stack.db.$count(archiveParts);
const isDone = async () => (await left()) === 0 && (await waiting()) === 0;
const isLogged = (text: string) => async () => lines.some((line) => line.includes(text));
/** The ids of all calls in the bucket, each as often as it is there. */
const archived = () =>
  [...s3.files.values()]
    .flatMap(rowsIn)
    .map((each) => each['hold_id'])
    .sort();

test('two issuers archive each call once into a bucket, with requests signed as AWS requires', async () => {
  const ids = await addCalls(11_000);
  await Promise.all([sweep(), sweep()]);
  await eventually(isDone);
  expect(archived()).toEqual(ids);
  expect(
    [...s3.files.keys()].filter((name) => !/^presign\/a\/ledger\/ledger-[\w.-]+\.csv\.gz$/.test(name)),
  ).toEqual([]);
  expect(new Set(s3.puts).size).toBe(s3.puts.length);
});

test('an upload whose answer is lost is not repeated under another name, and every call is archived once', async () => {
  const ids = await addCalls(6_000);
  s3.fault = 'cut';
  const stop = await sweep();
  await eventually(isLogged('old calls are not summed and deleted'));
  await stop();
  expect([s3.files.size, await waiting(), await left()]).toEqual([1, 1, 1_000]);
  s3.fault = undefined;
  await sweep();
  await eventually(isDone);
  expect(archived()).toEqual(ids);
  expect(s3.puts).toHaveLength(2);
});

test('a part whose issuer died while sending is sent by another one', async () => {
  const ids = await addCalls(10);
  s3.fault = 'away';
  const stop = await sweep();
  await eventually(isLogged('old calls are not summed and deleted'));
  await stop();
  s3.fault = undefined;
  // The claim of an issuer that still sends it, or that died.
  await stack.db.update(archiveParts).set({ claimedUntil: new Date(Date.now() + 3_600_000) });
  const other = await sweep();
  await other();
  expect([await waiting(), s3.files.size]).toEqual([1, 0]);
  await stack.db.update(archiveParts).set({ claimedUntil: new Date(Date.now() - 1_000) });
  await sweep();
  await eventually(isDone);
  expect(archived()).toEqual(ids);
});

test.each([
  ['half', 'S3 has other bytes than it got'],
  ['denied', 'S3 answered 403 AccessDenied to PUT'],
] as const)('rows stay in Postgres while the bucket fails (%s), and the log says why', async (fault, why) => {
  const ids = await addCalls(6_000);
  s3.fault = fault;
  const metrics = await serveMetrics('127.0.0.1', 0);
  const stop = await sweep(undefined, { meter: metrics.meter });
  await eventually(isLogged(why));
  expect([await waiting(), await left()]).toEqual([1, 1_000]);
  const lag = async () => (await scrape(metrics.port)).value('presign_archive_lag_seconds');
  await eventually(async () => (await lag()) > 0);
  // The issuer goes on.
  expect((await stack.issue(least)).url).toContain('/llm/t/');
  await stop();
  s3.fault = undefined;
  await sweep();
  await eventually(isDone);
  expect(archived()).toEqual(ids);
  await metrics.close();
});

test('neither the log nor Postgres contains the key of the bucket', async () => {
  await addCalls(10);
  s3.fault = 'denied';
  await sweep();
  await eventually(isLogged('AccessDenied'));
  const parts = JSON.stringify(await stack.db.select().from(archiveParts));
  for (const text of [lines.join(), parts])
    for (const secret of Object.values(S3_KEY)) expect(text).not.toContain(secret);
});

test('a store gets nothing before its certificate is checked, and can be reached through a proxy', async () => {
  await addCalls(10);
  const proxy = await startProxy();
  const store = await startTlsUpstream(await newCertificate('localhost'));
  await sweep(store.url, { proxy: { url: proxy.url } });
  await eventually(isLogged('DEPTH_ZERO_SELF_SIGNED_CERT'));
  expect(store.seen).toEqual([]);
  expect(proxy.tunnels.map(({ to }) => to)).toContain(new URL(store.url).host);
  expect(await waiting()).toBe(1);
  await store.close();
  await proxy.close();
});

test('long rows are split over files of bounded size', async () => {
  const ids = await addCalls(3_000, { externalUser: 'u'.repeat(6_000) });
  await sweep();
  await eventually(isDone);
  expect(archived()).toEqual(ids);
  expect(s3.files.size).toBe(3);
});
