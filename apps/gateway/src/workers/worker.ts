import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { workerData } from 'node:worker_threads';
import {
  type CountTokens,
  dialectOf,
  type Encoding,
  type Knowledge,
  loadProviders,
  type Prices,
  type Provider,
  type SavedTokens,
  savedTokens,
  tokenCounter,
} from '@presign/providers';
import type { McpArguments } from '@presign/schema';
import { move, transferableSymbol, valueSymbol } from 'piscina';
import { NO_RULES, RulesMemory, type RulesSource } from '../grant/call-rules.ts';
import { compileArguments, type ToolArguments, ToolMemory } from '../grant/tool-rules.ts';
import { isInMemory, piecesOf } from '../http/body.ts';
import { MODEST, scanBody } from '../llm/body.ts';
import type { SavedOf } from '../llm/hold.ts';
import type { CountReply, PlanData, PlanReply, PlanWork, TextsWork } from '../llm/large-body.ts';
import type { Plan } from '../llm/plan.ts';
import { bytesRead, countReply, planLight, planWhole, scanToPlan } from '../llm/plan-read.ts';
import { readMessages } from '../mcp/request/messages.ts';
import { movable } from '../share/body-memory.ts';
import { CountMemory, keyOfText } from '../share/count-memory.ts';

export type WorkerStart = {
  /** `PROVIDERS_FILE`. */
  readonly providersFile: string | undefined;
  /** The prices of every call that this worker plans. Other prices need other workers. */
  readonly prices: Prices;
  /** The knowledge of every call that this worker plans. Other knowledge needs other workers. */
  readonly knowledge: Knowledge;
};

const { providersFile, prices, knowledge } = workerData as WorkerStart;
const providers = loadProviders(providersFile, knowledge);

/** The result of a worker, and its working time without waiting and starting. */
export type Timed<T> = { readonly ms: number; readonly reply: T };

function timed<T>(work: () => T): Timed<T> {
  const began = performance.now();
  const reply = work();
  return { ms: performance.now() - began, reply };
}

/** Reads and plans an LLM call. The body goes back without being copied. */
export function plan(work: PlanWork) {
  const done: Timed<PlanReply> = timed(() => planInWorker(providers, prices, work));
  const buffers = movable('plan' in done.reply ? done.reply.plan.body : []);
  return move({ [transferableSymbol]: buffers, [valueSymbol]: done });
}

/** Until its next regular collection, V8 would keep several times the size of large bodies in each thread. */
const MUCH_BYTES = 32 * 1024 * 1024;
let bytesSince = 0;

/** Collects garbage after this many bytes were parsed, because a collection takes as long as reading a megabyte. */
function collectSoon(bytes: number): void {
  bytesSince += bytes;
  if (bytesSince < MUCH_BYTES) return;
  bytesSince = 0;
  // By then the reply has been sent.
  setImmediate(() => (globalThis.gc as (() => void) | undefined)?.());
}

/** Bounds an LLM call by the tokens of its plain text, instead of by their bytes. */
export function count(work: PlanWork): Timed<CountReply | undefined> {
  return timed(() => {
    return countReply(planWork(providers, prices, work, (encoding) => savedIn(work.accountId, encoding)));
  });
}

/** Counting a shorter text is faster than looking it up. */
const SHORT_CHARS = 128;

function savedIn(accountId: string, encoding: Encoding): SavedTokens {
  const counter = counterOf(encoding);
  return (text) => {
    if (typeof text !== 'string') throw new Error('a text to count was left out');
    const json = JSON.stringify(text);
    if (text.length < SHORT_CHARS) return savedTokens(text, json, counter);
    const key = keyOfText(accountId, encoding, json);
    const known = countsKnown.get(key);
    if (known !== undefined) return known;
    const saved = savedTokens(text, json, counter);
    countsKnown.set(key, saved);
    return saved;
  };
}

/** Counts texts on their own. */
export function countTexts({ bytes, encoding }: TextsWork): Timed<readonly number[]> {
  collectSoon(bytes.length);
  return timed(() => {
    const texts = JSON.parse(new TextDecoder().decode(bytes)) as string[];
    const counter = counterOf(encoding);
    return texts.map((text) => savedTokens(text, JSON.stringify(text), counter));
  });
}

/** The rules of the grants whose bodies this worker has read lately. */
const rulesKnown = new RulesMemory(4 * 1024 * 1024);
const countsKnown = new CountMemory();
const toolsKnown = new ToolMemory<ToolArguments>(4 * 1024 * 1024);

/** Ranks take a few megabytes for each encoding, so they are read with the first call that needs them. */
const counters = new Map<Encoding, CountTokens>();

function counterOf(encoding: Encoding): CountTokens {
  const known = counters.get(encoding);
  if (known) return known;
  const counter = tokenCounter(encoding, readFileSync(ranksOf(encoding)));
  counters.set(encoding, counter);
  return counter;
}

/** The bundle for containers has the ranks in the folder of the code. Outside the bundle, the loader may add a query to `import.meta.url`. */
const ranksOf = (encoding: Encoding): string =>
  /\.ts(?:\?|$)/.test(import.meta.url)
    ? createRequire(import.meta.url).resolve(`gpt-tokenizer/data/${encoding}.tiktoken`)
    : fileURLToPath(new URL(`./${encoding}.tiktoken`, import.meta.url));

/** The messages of a POST to read, as data that can be sent to a worker. */
export type MessagesWork = {
  readonly bytes: Uint8Array;
  readonly grantId: string;
  /** The conditions of the grant's arguments, as JSON. */
  readonly conditionsText: string | undefined;
};

/** Reads the messages of an MCP call. */
export function messages({ bytes, grantId, conditionsText }: MessagesWork) {
  collectSoon(bytes.length);
  return timed(() => {
    const read = Buffer.from(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.byteLength);
    const conditions =
      conditionsText === undefined
        ? undefined
        : toolsKnown.of(grantId, () => compileArguments(JSON.parse(conditionsText) as McpArguments));
    return readMessages(read, conditions);
  });
}

/** Reads and plans a call. It runs in a worker. */
export function planInWorker(
  providers: ReadonlyMap<string, Provider>,
  prices: Prices,
  work: PlanWork,
): PlanReply {
  const planned = planWork(providers, prices, work);
  if ('refusal' in planned) return planned;
  const { spend, pricing: _, answeredBy: __, bodyFor, ...data } = planned.plan;
  const written = data.writesBound ? aroundBound(work, bodyFor) : { body: piecesFor(bodyFor, 0) };
  return { plan: { beforeBound: undefined, ...data, isMetered: spend !== undefined, ...written } };
}

function planWork(
  providers: ReadonlyMap<string, Provider>,
  prices: Prices,
  { bytes, need, providerId, method, target, grantId, rulesText, limited, now }: PlanWork,
  savedOf?: SavedOf,
): ReturnType<typeof planWhole> {
  const provider = providers.get(providerId);
  if (!provider) return { refusal: { code: 'unknown_provider' } };
  const raw = Buffer.from(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.byteLength);
  const dialect = dialectOf(provider, target.path);
  const rules =
    rulesText === undefined
      ? NO_RULES
      : rulesKnown.of(grantId, dialect, () => JSON.parse(rulesText) as RulesSource);
  const at = { prices, now };
  const asked = {
    ...{ grant: { provider, method }, target, rules, limited, at },
    ...(savedOf && { savedOf }),
  };
  // A count reads all texts.
  const scan = savedOf ? scanBody(raw, need, rules.names, MODEST) : scanToPlan(raw, need, asked, MODEST);
  const light = planLight(raw, asked, scan);
  collectSoon(light ? bytesRead(raw, scan) : raw.length);
  return light ?? planWhole(raw, need, asked, scan);
}

const piecesFor = (bodyFor: Plan['bodyFor'], tokens: number): readonly Uint8Array[] => {
  const body = bodyFor(tokens);
  return isInMemory(body) ? piecesOf(body) : [];
};

/**
 * The body's pieces before and after its output bound, which only admission decides. The position of the bound is found by a random
 * number, in the one written piece that has it.
 */
function aroundBound({ bytes }: PlanWork, bodyFor: Plan['bodyFor']): Pick<PlanData, 'body' | 'beforeBound'> {
  const mark = String(randomInt(2 ** 47, 2 ** 48 - 1));
  const parts = piecesFor(bodyFor, Number(mark)).map((piece) =>
    piece.buffer === bytes.buffer ? [piece] : String(Buffer.from(piece)).split(mark).map(ownBytes),
  );
  const at = parts.findIndex(({ length }) => length === 2);
  if (at < 0 || parts.flat().length !== parts.length + 1)
    throw new Error('the output bound has no one place');
  return { body: parts.flat(), beforeBound: at + 1 };
}

/** Bytes in memory of their own: a thread that gets part of a pool gets a copy of all of it. */
const ownBytes = (text: string): Uint8Array => new TextEncoder().encode(text);
