import type { IncomingHttpHeaders } from 'node:http';
import type { EncryptionKeys } from '@presign/crypto';
import { giveOnce, keys, type RedisClient, takeOnce } from '@presign/limits';
import type { VerifiedGrant } from '../../grant/verify.ts';
import type { HandedId } from './handed-ids.ts';
import { isShort, sealId, sealScalar, unsealId } from './seal.ts';

/**
 * The answer to a request may ask for input (MCP 2026-07-28, "Multi Round-Trip Requests"). The client then sends the request again, with
 * the input and the state of the answer. All these rounds are one use. A state is sealed together with a digest of the request, and passes
 * for free once.
 */
export type Rounds = {
  /** A digest of the request's content. */
  readonly of: string;
  /** The round whose state the request contains. */
  readonly before: Round | undefined;
};

/** `chargeId` and `atMs` belong to the call whose answer contained the state. */
type Round = { readonly number: number; readonly chargeId: string; readonly atMs: number };

/** The most rounds of one use, the first one included. */
const ROUNDS_MAX = 10;
/** The lifetime of a state, because a person may have to enter the input. */
const STATE_MS = 3_600_000;
/** The revision that has rounds. */
const FIRST_VERSION = '2026-07-28';

/** Whether requests of this revision may have rounds. */
export const mayHaveRounds = ({ 'mcp-protocol-version': version }: IncomingHttpHeaders): boolean =>
  typeof version === 'string' && version >= FIRST_VERSION;

/** The rounds of the one request of a POST. Undefined if it has none. */
export function roundsOf(
  encryptionKeys: EncryptionKeys,
  grant: VerifiedGrant,
  { asked: of, ids }: { readonly asked?: string; readonly ids?: readonly HandedId[] },
): Rounds | undefined {
  if (of === undefined) return undefined;
  const state = ids?.find(({ kind }) => kind === 'state');
  const back = state && unsealState(encryptionKeys, grant, state.json);
  return { of, before: back?.of === of ? back.round : undefined };
}

/** The server's own state, as JSON, and the round that it ends. Undefined when it was not sealed for this grant. */
export function unsealState(encryptionKeys: EncryptionKeys, grant: VerifiedGrant, json: string) {
  if (!json.startsWith('"')) return undefined;
  const sealed = JSON.parse(json) as string;
  const text = unsealId(encryptionKeys, grant, 'round', sealed);
  if (text === undefined) {
    const own = unsealId(encryptionKeys, grant, 'state', sealed);
    return own === undefined ? undefined : { own };
  }
  const [number, chargeId, atMs, of, own] = JSON.parse(text) as [number, string, number, string, string];
  return { own, of, round: { number, chargeId, atMs } };
}

/** A call whose answer may have a state. */
type Call = {
  readonly grant: VerifiedGrant;
  readonly rounds?: Rounds | undefined;
  readonly round?: FreeRound | undefined;
  readonly chargeId: string;
  readonly beganMs: number;
};

/** Seals the state of an answer. Undefined if it is too long. */
export function sealState(encryptionKeys: EncryptionKeys, call: Call, json: string): string | undefined {
  const { grant, rounds, round, chargeId, beganMs } = call;
  const number = (round ? (rounds?.before?.number ?? 0) : 0) + 1;
  if (!rounds || number >= ROUNDS_MAX || !isShort('state', json))
    return sealScalar(encryptionKeys, grant, 'state', json);
  return `"${sealId(encryptionKeys, grant, 'round', JSON.stringify([number, chargeId, beganMs, rounds.of, json]))}"`;
}

/** A round that costs nothing. */
export type FreeRound = {
  /** Lets its state pass again, because nothing ran. */
  readonly giveBack: () => Promise<void>;
};

/**
 * Uses up the state of a round. Undefined if the state is too old or was used before, and the request then costs a use.
 * Throws what ioredis throws.
 */
export async function takeRound(
  { redis, now }: { readonly redis: RedisClient; readonly now: () => number },
  { partition }: VerifiedGrant,
  rounds: Rounds | undefined,
): Promise<FreeRound | undefined> {
  const { before } = rounds ?? {};
  if (!before || now() - before.atMs > STATE_MS) return undefined;
  const key = keys.round(partition, before.chargeId);
  // Longer than the lifetime of a state, by any gateway's clock.
  const taken = await takeOnce(redis, key, 2 * STATE_MS);
  return taken ? { giveBack: () => giveOnce(redis, key).catch(() => {}) } : undefined;
}
