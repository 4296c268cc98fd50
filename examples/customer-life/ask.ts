import { strict as assert } from 'node:assert';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const issuer = process.env.ISSUER_URL ?? 'http://127.0.0.1:8787';
const apiKeyFile = new URL('../../.presign/api-key', import.meta.url);

/** The API key that `start` made, with the scope `admin`. */
export const adminKey = process.env.PRESIGN_API_KEY ?? readFileSync(apiKeyFile, 'utf8').trim();

/** Asks the issuer, such as `GET /v1/sessions`, and holds it to a status that is expected; returns the body. */
export async function ask(
  key: string,
  expected: number | number[],
  request: string,
  body?: unknown,
): Promise<string> {
  const [method = '', path = ''] = request.split(' ');
  const answer = await fetch(issuer + path, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  assert.ok([expected].flat().includes(answer.status), `${request}: ${answer.status} ${text}`);
  return text;
}

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
