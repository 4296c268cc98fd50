import { strict as assert } from 'node:assert';
import { setTimeout as sleep } from 'node:timers/promises';
import { PresignError } from '@presign/client';

/** The error of what the issuer must refuse. */
export const refusalOf = (asked: Promise<unknown>): Promise<PresignError> =>
  asked.then(
    () => assert.fail('this was not refused'),
    (error: unknown) => {
      assert.ok(error instanceof PresignError, String(error));
      return error;
    },
  );

/** Asks for something that a little later is so: the ledger follows the calls by about a second. */
export async function until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  for (const end = Date.now() + 20_000; Date.now() < end; await sleep(200)) {
    const seen = await look();
    if (seen !== undefined) return seen;
  }
  throw new Error(`waited in vain for ${what}`);
}

export function tell(line: string): void {
  process.stdout.write(`${line}\n`);
}
