import { randomInt } from 'node:crypto';
import { workerData } from 'node:worker_threads';
import type { Hold } from '@presign/limits';
import { loadProviders, type Provider } from '@presign/providers';
import type { Refusal } from '@presign/schema';
import { move, transferableSymbol, valueSymbol } from 'piscina';
import type { Policy } from '../grant/policy.ts';
import { MODEST, type Need, readContent } from '../llm/body.ts';
import type { Target } from '../llm/match.ts';
import { planCall } from '../llm/plan.ts';
import { readMessages } from '../mcp/messages.ts';

/** The data that a worker starts with. */
export type WorkerStart = {
  /** `PROVIDERS_FILE`. */
  readonly providersFile: string | undefined;
};

const providers = loadProviders((workerData as WorkerStart).providersFile);

/** Reads and plans an LLM call. The body goes back without being copied. */
export function plan(work: PlanWork) {
  const reply = planInWorker(providers, work);
  const buffers = new Set('plan' in reply ? reply.plan.body.map((part) => part.buffer as ArrayBuffer) : []);
  return move({ [transferableSymbol]: [...buffers], [valueSymbol]: reply satisfies PlanReply });
}

/** Reads the messages of an MCP call. */
export const messages = (bytes: Uint8Array) =>
  readMessages(Buffer.from(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.byteLength));

/** A call to plan, as data that can be sent to a worker. */
export type PlanWork = {
  readonly bytes: Uint8Array;
  readonly need: Need;
  readonly providerId: string;
  readonly method: string;
  readonly target: Target;
  readonly policy: Pick<Policy, 'config' | 'costLimited'>;
  readonly now: number;
};

/** The part of a plan that is data. */
export type PlanData = {
  readonly hold: Hold | undefined;
  /** Whether the endpoint's usage is metered. */
  readonly isMetered: boolean;
  readonly model: string | undefined;
  readonly free: boolean;
  readonly streams: boolean;
  readonly dropsUsageEvent: boolean;
  readonly rewritten: boolean;
  readonly askedTokens: number;
  /** The body to send. The output bound stands between its parts when there are two. */
  readonly body: readonly Uint8Array[];
};

export type PlanReply = { readonly plan: PlanData } | { readonly refusal: Refusal };

/** Reads and plans a call. It runs in a worker. */
export function planInWorker(providers: ReadonlyMap<string, Provider>, work: PlanWork): PlanReply {
  const provider = providers.get(work.providerId);
  if (!provider) return { refusal: { code: 'unknown_provider' } };
  const { bytes, need, method, target, policy, now } = work;
  const raw = Buffer.from(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.byteLength);
  const read = readContent(raw, need, MODEST);
  if ('refusal' in read) return read;
  const planned = planCall({ grant: { provider, method }, target, policy, content: read.content, now });
  if ('refusal' in planned) return planned;
  const { spend, pricing: _, bodyFor, ...data } = planned.plan;
  const writesBound = data.hold?.ratePerMtok !== undefined && spend?.withOutputBound !== undefined;
  const body = writesBound ? aroundBound(bodyFor) : wholeBody(bodyFor);
  return { plan: { ...data, isMetered: spend !== undefined, body } };
}

function wholeBody(bodyFor: (tokens: number) => unknown): readonly Uint8Array[] {
  const body = bodyFor(0);
  return body instanceof Buffer ? [body] : [];
}

/**
 * The body's parts before and after its output bound, which only admission decides. The bound is found by a number that
 * is drawn at random, so that no holder can have written it elsewhere.
 */
function aroundBound(bodyFor: (tokens: number) => unknown): readonly Uint8Array[] {
  const mark = randomInt(2 ** 47, 2 ** 48 - 1);
  const body = bodyFor(mark);
  if (!(body instanceof Buffer)) throw new Error('a body with an output bound is written whole');
  const digits = String(mark);
  const at = body.indexOf(digits);
  if (at < 0 || body.indexOf(digits, at + 1) >= 0) throw new Error('the output bound has no one place');
  return [body.subarray(0, at), body.subarray(at + digits.length)];
}
