import { setTimeout as sleep } from 'node:timers/promises';
import { type Dispatcher, Pool } from 'undici';
import { cpuMicros, rssOf } from '../processes.ts';
import { agentBody, chatBody } from './agent-body.ts';

/** 80 events of a stream. */
export const EVENT_COUNT = 80;
export const EVENT_MS = 20;
/** A stream that is open for a minute. */
export const SLOW = { events: 13, everyMs: 5_000 };
/** An answer of 2 KB. */
const answerOf = (content: string) =>
  JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion',
    model: 'gpt-4o-mini',
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 250, completion_tokens: 450, total_tokens: 700 },
  });
export const ANSWER = answerOf('x'.repeat(1_800));
/** An answer of 200 KB. */
export const LONG_ANSWER = answerOf('word and\n'.repeat(20_000));
export const MCP_ANSWER = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  result: { content: [{ type: 'text', text: 'x'.repeat(1_900) }] },
});

const PROMPT = [{ role: 'user', content: 'x'.repeat(880) }];
const ask = (more: object) =>
  JSON.stringify({ model: 'gpt-4o-mini', max_tokens: 500, messages: PROMPT, ...more });
// The client asks for its usage, so no peer has to add the field and to remove the event.
const STREAM = ask({ stream: true, stream_options: { include_usage: true } });

/** The requests of clients, 1 KB, and the least answer that they must get. */
export type Load = {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly leastBytes: number;
  /** The cost of a call by the usage in its answer; undefined if it costs nothing. */
  readonly costMicrousd?: number;
  readonly connections: number;
  /** At least so long, because CPU time is counted in ticks of 10 ms, and few calls end in a second. */
  readonly leastSeconds?: number;
};
const load = (
  kind: string,
  body: string,
  leastBytes: number,
  costMicrousd: number,
  connections = 64,
): Load => ({
  body,
  costMicrousd,
  headers: { 'content-type': 'application/json', 'x-answer': kind },
  leastBytes,
  connections,
});
const KB = 1_024;
export const LOADS = {
  json: load('json', ask({}), 1_800, 308),
  in32k: load('json', agentBody(32 * KB), 1_800, 308),
  in256k: load('json', agentBody(256 * KB), 1_800, 308, 16),
  in1m: { ...load('json', agentBody(1_024 * KB), 1_800, 308, 16), leastSeconds: 4 },
  chat32k: load('json', chatBody(32 * KB), 1_800, 308),
  chat256k: load('json', chatBody(256 * KB), 1_800, 308, 16),
  out200k: load('long', ask({}), 200_000, 308),
  burst: load('burst', STREAM, EVENT_COUNT * 60, 86),
  paced: { ...load('paced', STREAM, EVENT_COUNT * 60, 86, 128), leastSeconds: 6 },
  mcp: load(
    'mcp',
    JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'search', arguments: { query: 'x'.repeat(880) } },
    }),
    1_900,
    1_000,
  ),
} as const;

/** Where calls go. */
export type Target = {
  readonly name: string;
  readonly origin: string;
  readonly paths: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  /** Whose CPU time and memory are read. Undefined: of no process. */
  readonly pid: number | undefined;
};

/** Figures of one measurement. CPU time is that of all threads of the process. */
export type Figures = {
  readonly calls: number;
  readonly cpuUs: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly rssMb: number;
};

/** The position in the list of paths, so that a further measurement goes on where the last one ended. */
const positions = new WeakMap<readonly string[], number>();

/** Makes calls one after another on each connection, for a time or for a number of calls. */
export async function closedLoop(
  target: Target,
  load: Load,
  until: { readonly seconds: number } | { readonly calls: number },
): Promise<Figures> {
  const most = 'calls' in until ? until.calls : Number.POSITIVE_INFINITY;
  const lasts = 'seconds' in until ? until.seconds * 1_000 : Number.POSITIVE_INFINITY;
  let begun = 0;
  return measure(target, load, async (call, began) => {
    const lane = async (_: unknown, index: number) => {
      // Not all streams send their events at the same moment.
      if (load.headers['x-answer'] === 'paced') await sleep((index * EVENT_MS) / load.connections);
      while (begun < most && performance.now() - began < lasts) {
        begun++;
        await call(performance.now());
      }
    };
    await Promise.all(Array.from({ length: load.connections }, lane));
  });
}

/**
 * Begins calls at a fixed rate, whether earlier ones have been answered or not, so that a slow answer delays no later call
 * (no coordinated omission). A timer fires up to 2 ms late, which is not the target's fault; beyond that a call's time
 * counts from the moment at which it was due.
 */
export async function openLoop(target: Target, load: Load, perSecond: number, seconds: number) {
  const TIMER_MS = 2;
  return measure(target, { ...load, connections: 512 }, async (call, began) => {
    const calls: Promise<void>[] = [];
    for (let i = 0; i < perSecond * seconds; i++) {
      const due = began + (i * 1_000) / perSecond;
      const early = due - performance.now();
      if (early > 0) await sleep(early);
      const now = performance.now();
      calls.push(call(now - due > TIMER_MS ? due : now));
    }
    await Promise.all(calls);
  });
}

type Call = (beganMs: number) => Promise<void>;

async function measure(
  target: Target,
  load: Load,
  run: (call: Call, began: number) => Promise<void>,
): Promise<Figures> {
  const { pid, paths } = target;
  const pool = new Pool(target.origin, {
    connections: load.connections,
    pipelining: 1,
    headersTimeout: 60_000,
  });
  const headers = { ...load.headers, ...target.headers };
  const millis: number[] = [];
  let position = positions.get(paths) ?? 0;
  const call: Call = async (beganMs) => {
    const path = paths[position++ % paths.length] ?? '/';
    await once(pool, { path, method: 'POST', body: load.body, headers }, load.leastBytes, target.name);
    millis.push(performance.now() - beganMs);
  };
  let rssMb = Number.NaN;
  const look = () => {
    if (pid !== undefined) rssMb = Math.max(rssMb || 0, rssOf(pid));
  };
  const looking = setInterval(look, 100);
  const cpuBefore = pid === undefined ? Number.NaN : cpuMicros(pid);
  const began = performance.now();
  await run(call, began);
  const seconds = (performance.now() - began) / 1_000;
  look();
  clearInterval(looking);
  // The work of a settle after the answer belongs to the call.
  await sleep(100);
  const cpuAfter = pid === undefined ? Number.NaN : cpuMicros(pid);
  await pool.destroy();
  positions.set(paths, position);
  const calls = millis.length;
  millis.sort((a, b) => a - b);
  const at = (share: number) => millis[Math.min(calls - 1, Math.floor(share * calls))] ?? Number.NaN;
  const cpuUs = (cpuAfter - cpuBefore) / calls;
  return { calls, cpuUs, perSecond: calls / seconds, p50Ms: at(0.5), p99Ms: at(0.99), rssMb };
}

/** One call, with the least work for this process: bytes are counted and not kept. Rejects when the answer is not the wanted one. */
const once = (
  pool: Pool,
  options: Dispatcher.DispatchOptions,
  leastBytes: number,
  name: string,
): Promise<void> =>
  new Promise((resolve, reject) => {
    let status = 0;
    let bytes = 0;
    let first = '';
    pool.dispatch(options, {
      onRequestStart() {},
      onResponseStart(_, statusCode) {
        status = statusCode;
      },
      onResponseData(_, chunk) {
        bytes += chunk.length;
        if (status !== 200) first += String(chunk);
      },
      onResponseEnd() {
        if (status === 200 && bytes >= leastBytes) resolve();
        else reject(new Error(`${name} answered ${status} with ${bytes} bytes: ${first.slice(0, 300)}`));
      },
      onResponseError: (_, error) => reject(new Error(`${name}: ${error.message}`)),
    });
  });
