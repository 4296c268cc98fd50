import { setTimeout as pause } from 'node:timers/promises';
import { type Command, CommandError, type Given, type Io, UsageError } from './command.ts';
import { resealCopies } from './reseal-copies.ts';
import { resealOrigins } from './reseal-origins.ts';
import { PLACES, type Resealed, resealPlace } from './reseal-rows.ts';
import { encryptionKeysOf, withStores } from './stores.ts';

/**
 * A gateway may have read a credential before it was sealed anew, and put it into Redis after: at most a statement's
 * and a command's time later, 10 and 5 seconds.
 */
const WAIT_SECONDS = 20;
const BATCH = 500;

/** `reseal`: seals all that is stored with the first of `ENCRYPTION_KEYS`, beside running services. */
export const RESEAL: Command = {
  name: 'reseal',
  summary: 'Seal all that is stored with the first of ENCRYPTION_KEYS, while everything runs',
  details: [
    'Issuers and gateways must have that key, and seal with it, before (see encryption-keys rotate). It may be broken off',
    'and run again at any time. Exit code 1: something is still sealed with another key.',
  ],
  options: {
    batch: { value: 'N', about: `rows that one statement writes; ${BATCH} unless said` },
    wait: {
      value: 'SECONDS',
      about: `before the copies in Redis: longer than a gateway takes to open a URL; ${WAIT_SECONDS} unless said`,
    },
  },
  run: async (given, io) => {
    const keys = encryptionKeysOf(io);
    const batch = wholeNumber(given, 'batch', BATCH, 1, 10_000);
    const wait = wholeNumber(given, 'wait', WAIT_SECONDS, 0, 3_600);
    const left = await withStores(io, async ({ db, redis }) => {
      const inRows = async () => {
        let left = 0;
        for (const place of PLACES) left += tell(io, place.what, await resealPlace(db, keys, place, batch));
        return left + tell(io, 'fingerprints of refresh tokens', await resealOrigins(db, keys, batch));
      };
      await inRows();
      io.note(`Waiting ${wait} s for gateways that read Postgres before…`);
      await pause(wait * 1000);
      // What was sealed meanwhile by a service that still seals with another key.
      const again = await inRows();
      return again + tell(io, 'copies in Redis', await resealCopies(db, redis, keys));
    });
    if (left > 0)
      throw new CommandError(`${left} could not be sealed anew: their key is not in ENCRYPTION_KEYS`);
    io.note(`All that is stored is sealed with ${keys.sealing.id}.`);
  },
};

function tell(io: Io, what: string, { resealed, left }: Resealed): number {
  if (resealed > 0 || left > 0) io.note(`${what}: ${resealed} sealed anew${left > 0 ? `, ${left} not` : ''}`);
  return left;
}

function wholeNumber(given: Given, name: string, fallback: number, least: number, most: number): number {
  const text = given.text(name);
  if (text === undefined) return fallback;
  const value = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw new UsageError(`--${name}: expected a whole number from ${least} to ${most}`);
}
