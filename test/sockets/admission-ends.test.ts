import { createHash } from 'node:crypto';
import { admitScript, connectRedis, keys, type RedisClient } from '@presign/limits';
import type { VirtualKeyAnswer } from '@presign/schema';
import { type Metrics, serveMetrics } from '@presign/service/metrics';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { refOf } from '../chaos/sample.ts';
import { deferred, eventually } from '../harness/eventually.ts';
import { scrape } from '../harness/scrape.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { send } from '../issuer/ask.ts';
import { createsOf, ends, PROTOCOLS, type Served, type SocketProtocol } from './protocols.ts';
import { SPEECH } from './realtime-provider.ts';
import type { Json } from './responses-provider.ts';

let protocol: SocketProtocol;
let served: Served;
let metrics: Metrics;
let stack: Stack;
let redis: RedisClient;
/** Where Redis answers admissions late. */
let late: string;

const sha = createHash('sha1').update(admitScript.text).digest('hex');
/** Answers to admissions wait for this. */
let answers = Promise.resolve();
/** How many Redis has admitted. */
let admitted = 0;

/** A Redis that admits at once, and whose answers wait. */
const answeringLate = () =>
  new Proxy(redis, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      const sent = (...args: unknown[]) => (value as (...args: unknown[]) => unknown).apply(target, args);
      if (name !== 'evalsha') return sent;
      return async (...args: unknown[]) => {
        const answer = await sent(...args);
        if (args[0] !== sha) return answer;
        admitted += 1;
        await answers;
        return answer;
      };
    },
  });

const ask = async <T>(method: string, path: string, body?: object): Promise<T> => {
  const sent = await send(stack, { method, path, ...(body && { body }) });
  expect(sent.status, sent.text).toBeLessThan(300);
  return (sent.text === '' ? undefined : JSON.parse(sent.text)) as T;
};
const issue = async (more: object = { client_api_key: 'sk-real' }, at = late) => {
  const issued = await stack.issue({ ...protocol.asked, cost_limit: protocol.muchMoney, ...more });
  return { ...issued, url: issued.url.replace(stack.gatewayUrls[0] ?? '', at) };
};
/** The one row of a URL. */
const rowOf = (grantId: string) =>
  eventually(async () => {
    const { data } = await ask<{ data: Json[] }>('GET', `/v1/calls?outcome=all&grant_id=${grantId}`);
    return data[0];
  });
/** The give-backs of a URL, of which it has a bounded number. */
const givenBack = async (url: string) => {
  const { partition, budgetIds } = await refOf(stack.db, url);
  return Number(await stack.redis.hget(keys.budget(partition, budgetIds[0] ?? ''), 'returned'));
};
/** The lines of turns of a URL, once one is there and its socket has ended. */
const linesOf = (grantId: string) =>
  eventually(async () => {
    const lines = stack.logs.map((line) => JSON.parse(line) as Json);
    const calls = lines.filter(({ msg, grant }) => msg === 'call' && grant === grantId);
    const turns = calls.filter(({ kind }) => kind === 'llm');
    return turns.length > 0 && turns.length < calls.length && turns;
  });

type Ending = {
  readonly grantId: string;
  /** Stops the gateway. */
  readonly stop: () => void;
};

/** Each end of a socket, and how a turn is booked that Redis admits meanwhile. */
const ENDS: readonly [string, (of: Ending) => unknown, string][] = [
  ['its URL is revoked', ({ grantId }) => ask('DELETE', `/v1/grants/${grantId}`), 'grant_revoked'],
  [
    'its URL ends',
    ({ grantId }) => ask('PATCH', `/v1/grants/${grantId}`, { expires_at: Math.ceil(Date.now() / 1000) + 1 }),
    'token_expired',
  ],
  ['its gateway stops', ({ stop }) => stop(), 'overloaded'],
  [
    'its provider closes the socket',
    () => served.provider.sockets.at(-1)?.socket.terminate(),
    'upstream_unreachable',
  ],
];

describe.each(PROTOCOLS)('$name', (each) => {
  beforeAll(async () => {
    protocol = each;
    served = await protocol.start();
    metrics = await serveMetrics('127.0.0.1', 0);
    stack = await startStack({
      providers: { openai: { base_url: served.provider.url } },
      gateway: { meter: metrics.meter },
    });
    redis = connectRedis(stack.redisUrl, () => {}, stack.redisTimeouts);
  });
  afterAll(async () => {
    await stack.close();
    redis.disconnect();
    await metrics.close();
    await served.provider.close();
  });

  test.each(ENDS)(
    'when %s, a turn that is admitted meanwhile is not sent, and costs nothing',
    async (_what, happens, cause) => {
      late = await stack.addGateway({ redis: answeringLate() });
      const gateway = stack.gateways.at(-1);
      const { url, grant_id } = await issue();
      const holder = await protocol.open(url);
      const before = { admitted, creates: createsOf(served).length };
      const { promise, resolve } = deferred();
      answers = promise;
      holder.send(protocol.create());
      await eventually(async () => admitted > before.admitted);
      let stopped: Promise<void> | undefined;
      const stop = () => {
        stopped = gateway?.close({ graceMs: 60_000 });
      };
      await happens({ grantId: grant_id, stop });
      await holder.closed;
      resolve();
      const [line, ...more] = await linesOf(grant_id);
      expect(more).toEqual([]);
      expect(line).toMatchObject({ ended: 'unsent', uses: 0, cost: 0 });
      expect(await rowOf(grant_id)).toMatchObject({ turn: 1, uses: 0, cost: 0, failure: cause });
      // Only the provider is named as one that was not reached.
      expect('upstream' in (line ?? {})).toBe(cause === 'upstream_unreachable');
      expect(createsOf(served)).toHaveLength(before.creates);
      // A holder cannot repeat the stop of a gateway.
      if (cause === 'overloaded') expect(await givenBack(url)).toBe(0);
      if (cause === 'upstream_unreachable') expect(await givenBack(url)).toBeGreaterThan(0);
      await stopped;
    },
  );

  // While an event of a holder is judged, its side is not read. The response to a speech is begun without one.
  test.runIf(each.name === 'Realtime')(
    'a turn whose holder leaves meanwhile is not sent, and the provider is not blamed for it',
    async () => {
      late = await stack.addGateway({ redis: answeringLate() });
      const { url, grant_id } = await issue();
      const holder = await protocol.open(url);
      const before = { admitted, creates: createsOf(served).length };
      const { promise, resolve } = deferred();
      answers = promise;
      holder.send({ type: 'input_audio_buffer.append', audio: SPEECH });
      await eventually(async () => admitted > before.admitted);
      holder.socket.terminate();
      await eventually(async () => (served.provider.sockets.at(-1)?.socket.readyState ?? 0) > 1);
      resolve();
      const [line] = await linesOf(grant_id);
      expect(line).toMatchObject({ ended: 'unsent', code: 'holder_left', uses: 0, cost: 0, level: 30 });
      expect(line).not.toHaveProperty('upstream');
      expect(await rowOf(grant_id)).toMatchObject({ turn: 1, uses: 0, cost: 0, failure: 'holder_left' });
      expect(createsOf(served)).toHaveLength(before.creates);
      expect(await givenBack(url)).toBeGreaterThan(0);
    },
  );

  test('a turn whose key was rotated is one call, which the books do not lay on the provider', async () => {
    const asked = { name: 'k', provider: 'openai', key: 'sk-real' };
    const { id } = await ask<VirtualKeyAnswer>('POST', '/v1/virtual-keys', asked);
    const { url, grant_id } = await issue({ virtual_key: id }, stack.gatewayUrls[0]);
    const holder = await protocol.open(url);
    await ask('POST', `/v1/virtual-keys/${id}/rotate`, { key: 'sk-other' });
    const unsent = 'presign_calls_total{kind="llm",provider="openai",outcome="unsent"}';
    const before = (await scrape(metrics.port)).value(unsent);
    holder.send(protocol.create());
    expect(await ends(protocol, holder)).toBe('overloaded');
    await holder.closed;
    expect(await linesOf(grant_id)).toMatchObject([
      { ended: 'unsent', code: 'overloaded', uses: 0, cost: 0 },
    ]);
    expect(await rowOf(grant_id)).toMatchObject({ uses: 0, cost: 0, failure: 'overloaded' });
    expect(await givenBack(url)).toBe(0);
    expect((await scrape(metrics.port)).value(unsent)).toBe(before + 1);
  });
});
