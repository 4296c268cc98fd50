import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { call } from '../chaos/load.ts';
import { startWorld, type World } from '../chaos/world.ts';
import { freePort } from '../harness/free-port.ts';
import { type Answer, startUpstream } from '../harness/upstream.ts';
import { addEndpoint } from '../issuer/webhook-receiver.ts';
import { canMount, makeSmallDisk, type SmallDisk } from './small-disk.ts';
import type { Code } from './witness.ts';

const CALL = { model: 'm', messages: [{ role: 'user', content: 'x' }], max_tokens: 16 };
const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };

/** How a provider behaves. */
export type Manner = 'well' | 'fails' | 'limits' | 'revoked' | 'hangs' | 'slow';
const STATUSES: Partial<Record<Manner, number>> = { fails: 500, limits: 429, revoked: 401 };
/** Longer than `PresignProviderSlow` allows. */
const SLOW_MS = 31_000;

/** Everything in processes of their own, with providers that may fail and a load that goes on meanwhile. */
export type AlertWorld = {
  readonly world: World;
  readonly issue: (provider: string, fields?: object) => Promise<string>;
  /** Calls over a gateway. 200, the code of a refusal, or another status; 0 without an answer. */
  readonly ask: (gateway: number, url: string, body?: object) => Promise<Code>;
  readonly issueCode: () => Promise<Code>;
  /** 200 if `/readyz` is ready and names no problem. */
  readonly readiness: (url: string) => Promise<Code>;
  /** How these providers behave from now on: `changes` or `changes-2`… */
  readonly behave: (provider: string, manner: Manner) => void;
  /** How the endpoint of webhooks answers. */
  readonly hook: (status: number) => void;
  readonly disk: SmallDisk | undefined;
  /** Ends the load. */
  readonly close: () => Promise<void>;
};

/** Providers that can change their manner, and two that never can be reached. */
export const CHANGING: readonly Manner[] = ['fails', 'limits', 'revoked', 'hangs', 'slow'];
const NO_ANSWER = 'no answer';

export async function startAlertWorld(): Promise<AlertWorld> {
  const manners = new Map<string, Manner>();
  const held = new Set<ServerResponse>();
  const behaving =
    (provider: string): Answer =>
    async (_seen, response) => {
      const manner = manners.get(provider) ?? 'well';
      if (manner === 'hangs') return void held.add(response);
      if (manner === 'slow') await sleep(SLOW_MS);
      answer(response, USAGE, STATUSES[manner]);
    };
  const upstreams: Readonly<Record<string, Answer>> = {
    openai: behaving('openai'),
    ...Object.fromEntries(CHANGING.map((name) => [name, behaving(name)])),
    contradicts: (_seen, response) => answer(response, { ...USAGE, prompt_tokens: 0, total_tokens: 5 }),
    unknown: (_seen, response) => answer(response, { ...USAGE, new_tokens: 3 }),
  };
  const providers: Record<string, object> = {};
  const pricing = { m: { input: 1_000_000, output: 4_000_000 } };
  const add = (name: string, base_url: string) => {
    providers[name] = { ...(name !== 'openai' && { extends: 'openai' }), base_url, pricing };
  };
  const closings: (() => Promise<unknown> | unknown)[] = [];
  for (const [name, each] of Object.entries(upstreams)) {
    const upstream = await startUpstream(each);
    closings.push(upstream.close);
    add(name, upstream.url);
  }
  add('refuses', `http://127.0.0.1:${await freePort()}`);
  add('nameless', 'http://provider.invalid');
  const disk = canMount ? makeSmallDisk(256) : undefined;
  if (disk) closings.push(disk.remove);
  const world = await startWorld(providers, {
    ...(disk && { postgres: disk.folder }),
    // For PgBouncer in the way.
    env: { DATABASE_PREPARE: 'false', ALLOW_PRIVATE_UPSTREAMS: 'true' },
  });
  closings.push(world.close);
  const { hook, close: closeHook } = await addHook(world);
  closings.push(closeHook);
  const asking = askerOf(world);
  const endLoad = await startLoad(asking);
  closings.push(endLoad);
  return {
    world,
    ...asking,
    hook,
    disk,
    behave: (provider, manner) => {
      manners.set(provider, manner);
      if (manner !== 'hangs') for (const each of held) if (!each.writableEnded) answer(each, USAGE);
    },
    close: async () => {
      for (const close of closings.reverse()) await close();
    },
  };
}

function answer(response: ServerResponse, usage: object, status = 200): void {
  const body = { id: '1', model: 'm', choices: [], usage };
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/** An endpoint that is notified of each session that has no uses left. */
async function addHook(world: World) {
  let status = 204;
  const endpoint = await addEndpoint(world, {
    events: ['session.exhausted'],
    answer: (_seen, response) => void response.writeHead(status).end(),
  });
  const hook = (next: number) => {
    status = next;
  };
  return { hook, close: endpoint.upstream.close };
}

function askerOf(world: World): Pick<AlertWorld, 'issue' | 'ask' | 'issueCode' | 'readiness'> {
  const issue = (provider: string, fields: object = {}) =>
    world.issue({ provider, path: '/v1/chat/completions', client_api_key: 'sk-1', ...fields });
  const ask = async (gateway: number, url: string, body: object = CALL) => {
    const own = url.replace(world.gatewayUrls[0], world.gatewayUrls[gateway % 2] ?? '');
    const { status, code } = await call(own, body);
    return code ?? status;
  };
  const issueCode = async () => {
    const headers = { authorization: `Bearer ${world.apiKey}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ provider: 'openai', path: '/v1/x', client_api_key: 'sk-1' });
    const signal = AbortSignal.timeout(20_000);
    const to = `${world.issuerUrl}/v1/presign`;
    const answered = await fetch(to, { method: 'POST', headers, body, signal }).catch(() => {});
    if (!answered) return 0;
    const { error } = (await answered.json()) as { error?: { code: string } };
    return error?.code ?? answered.status;
  };
  const readiness = async (url: string) => {
    const answered = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(2_000) }).catch(() => {});
    if (!answered) return NO_ANSWER;
    const { problems } = (await answered.json()) as { problems: readonly unknown[] };
    return problems.length > 0 ? 503 : answered.status;
  };
  return { issue, ask, issueCode, readiness };
}

/** Callers that go on whatever they get: served calls, URLs, and what makes each figure of the dashboard. */
async function startLoad({
  issue,
  ask,
  issueCode,
}: Pick<AlertWorld, 'issue' | 'ask' | 'issueCode'>): Promise<() => Promise<unknown>> {
  const limited = { cost_limit: 100_000_000 };
  const served = await issue('openai');
  const others = [
    [await issue('openai', { max_uses: 1 }), CALL],
    [await issue('contradicts', limited), CALL],
    [await issue('unknown', limited), CALL],
    [await issue('openai', limited), { ...CALL, new_field: 1 }],
  ] as const;
  let isOver = false;
  const repeat = async (work: () => Promise<unknown>) => {
    while (!isOver) await Promise.all([within(work(), 10_000), sleep(250)]);
  };
  const once = async () => {
    const url = await issue('openai', { max_uses: 1 }).catch(() => undefined);
    if (url) await ask(0, url);
  };
  const lanes = [
    ...[0, 1].map((gateway) => repeat(() => ask(gateway, served))),
    ...Array.from({ length: 4 }, () => repeat(issueCode)),
    repeat(() => Promise.all(others.map(([url, body]) => ask(0, url, body)))),
    repeat(once),
  ];
  return () => {
    isOver = true;
    return Promise.all(lanes);
  };
}

/** The result, or that there is none after so many ms. */
export const within = <T>(work: Promise<T>, ms: number): Promise<T | typeof NO_ANSWER> =>
  Promise.race([work, sleep(ms, NO_ANSWER, { ref: false })] as const) as Promise<T | typeof NO_ANSWER>;
