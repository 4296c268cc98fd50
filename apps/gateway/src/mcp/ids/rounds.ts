import type { IncomingHttpHeaders } from 'node:http';
import type { EncryptionKeys } from '@presign/crypto';
import { giveOnce, keys, type RedisClient, takeOnce } from '@presign/limits';
import type { VerifiedGrant } from '../../grant/verify.ts';
import type { HandedId } from './handed-ids.ts';
import { isShort, sealId, sealScalar, unsealId } from './seal.ts';

/**
 * The answer to a request may ask for input (MCP 2026-07-28, "Multi Round-Trip Requests"). The client then sends the request again, with the
 * input and the state of the answer. All these rounds are one use. A state is sealed with what the request asks for, and passes
 * for free once.
 */
export type Rounds = {
  /** A digest of what the request asks for. */
  readonly of: string;
  /** The round whose state the request brings back. */
  readonly before: Round | undefined;
};

/** `chargeId` is that of the call whose answer had the state, and `atMs` its time. */
type Round = { readonly number: number; readonly chargeId: string; readonly atMs: number };

/** The most rounds of one use, the first one included. */
const ROUNDS_MAX = 10;
/** A person may be asked for the input. */
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
  /** Lets its state pass again, as nothing ran. */
  readonly giveBack: () => Promise<void>;
};

/**
 * Takes the state of a round. Undefined if it is too old or has passed before: the request then costs a use.
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
  // Longer than the state is good for, by any gateway's clock.
  const taken = await takeOnce(redis, key, 2 * STATE_MS);
  return taken ? { giveBack: () => giveOnce(redis, key).catch(() => {}) } : undefined;
}
