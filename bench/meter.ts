// What planning a call and metering its answer cost under a spend limit: CPU of one process, no sockets, no stores.
// Run: npx tsx bench/meter.ts [rounds]
import { cpus } from 'node:os';
import { NO_RULES } from '../apps/gateway/src/grant/call-rules.ts';
import { type Content, MODEST, readContent, scanBody } from '../apps/gateway/src/llm/body.ts';
import { createMeter, type MeterOptions } from '../apps/gateway/src/llm/meter.ts';
import { planCall } from '../apps/gateway/src/llm/plan.ts';
import { bodyMemory } from '../apps/gateway/src/share/body-memory.ts';
import { BUNDLED_PRICES, loadProviders } from '../packages/providers/src/index.ts';

const ROUNDS = Number(process.argv[2] ?? 9);
const MILLIS = 300;
const MIB = 1024 * 1024;

const openai = loadProviders(undefined).get('openai');
if (!openai) throw new Error('no provider');
const plan = (json: Record<string, unknown>, content: Content = { raw: null, json }) => {
  const target = { path: '/v1/chat/completions', query: '' };
  const planned = planCall({
    grant: { provider: openai, method: 'POST' },
    target,
    rules: NO_RULES,
    limited: { costLimited: true },
    content,
    at: { prices: BUNDLED_PRICES, now: Date.now() },
  });
  if ('refusal' in planned) throw new Error(planned.refusal.code);
  return planned.plan;
};
const ask = (content: string, more: object = {}) => ({
  model: 'gpt-4o-mini',
  messages: [{ role: 'user', content }],
  max_tokens: 500,
  ...more,
});
const planned = (json: Record<string, unknown>) => {
  const made = plan(json);
  made.bodyFor(made.askedTokens);
};

/** As a call does: its bytes are looked through, parsed, planned and written. */
const readAndPlanned = (raw: Buffer) => {
  const scan = scanBody(raw, 'must', NO_RULES.names, MODEST);
  const read = readContent(raw, 'must', scan);
  if ('refusal' in read) throw new Error(read.refusal.code);
  const made = plan({}, read.content);
  made.bodyFor(made.askedTokens);
};

const { spend, pricing } = plan(ask('x'));
if (!spend || !pricing) throw new Error('nothing known of the endpoint');
const usage = { prompt_tokens: 250, completion_tokens: 480, total_tokens: 730 };
const WHOLE = Buffer.from(JSON.stringify({ choices: [{ message: { content: 'x'.repeat(1_900) } }], usage }));
const data = (value: object) => `data: ${JSON.stringify(value)}\n\n`;
const DELTA = Buffer.from(
  data({
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta: { content: ' word' } }],
  }),
);
const LAST = Buffer.from(`${data({ choices: [], usage })}data: [DONE]\n\n`);
const EVENTS = 1_000;

const memory = bodyMemory(MIB, MIB);
const answer: Omit<MeterOptions, 'memory'> = {
  spend,
  status: 200,
  contentType: 'application/json',
  contentEncoding: '',
  dropsUsageEvent: false,
  keepsLast: true,
};
const priced = async (options: Omit<MeterOptions, 'memory'>, chunks: readonly Buffer[]) => {
  const reservation = memory.newReservation();
  const meter = createMeter({ ...options, memory: reservation });
  for (const chunk of chunks) meter.pass(chunk);
  const { reported } = await meter.end();
  reservation.release();
  if (!reported?.usage || pricing.cost(reported.usage) === undefined)
    throw new Error('no usage was reported');
};
const events = { ...answer, contentType: 'text/event-stream', dropsUsageEvent: true };
const stream = [...Array.from({ length: EVENTS }, () => DELTA), LAST];

type Subject = { readonly what: string; readonly per: number; readonly run: () => void | Promise<void> };
const SMALL = Buffer.from(JSON.stringify(ask('x'.repeat(900))));
const long = ask('x'.repeat(60 * MIB));
const other = ask('é'.repeat(30 * MIB));
const tools = ask('x', {
  tools: [{ type: 'function', function: { name: 'f', description: '{<'.repeat(30 * MIB) } }],
});
const subjects: Subject[] = [
  { what: 'read and plan a call of 1 KB', per: 1, run: () => readAndPlanned(SMALL) },
  { what: 'meter and price an answer of 2 KB', per: 1, run: () => priced(answer, [WHOLE]) },
  { what: 'meter one event of a stream', per: EVENTS, run: () => priced(events, stream) },
  { what: 'plan 60 MiB of ASCII', per: 1, run: () => planned(long) },
  { what: 'plan 60 MiB beyond ASCII', per: 1, run: () => planned(other) },
  { what: 'plan 60 MiB of tools', per: 1, run: () => planned(tools) },
];

const results = new Map(subjects.map(({ what }) => [what, [] as number[]]));
for (let round = -1; round < ROUNDS; round++) {
  for (const subject of subjects) {
    const micros = await cpuMicros(subject);
    if (round >= 0) results.get(subject.what)?.push(micros);
  }
}
console.log(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model}; medians of ${ROUNDS} rounds`);
console.table(
  subjects.map(({ what }) => ({ what, 'CPU µs': Number(median(results.get(what) ?? []).toPrecision(3)) })),
);

/** CPU time of one turn, user and system, all threads of the process. */
async function cpuMicros({ per, run }: Subject): Promise<number> {
  const before = process.cpuUsage();
  const end = performance.now() + MILLIS;
  let turns = 0;
  do {
    await run();
    turns++;
  } while (performance.now() < end);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / turns / per;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
