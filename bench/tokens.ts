// How long signing and verifying one token takes, here (node:crypto) and in paseto-ts (plain JavaScript).
// Run: npx tsx bench/tokens.ts
import { cpus } from 'node:os';
import { generateSigningKey, readPublicKeys, readSigningKey, signToken, verifyToken } from '@presign/crypto';
import { sign, verify } from 'paseto-ts/v4';

const ROUNDS = 21;
const ROUND_MS = 60;
const PAYLOAD_BYTES = 500;

const secret = generateSigningKey();
const key = readSigningKey(secret);
const keys = readPublicKeys(key.publicKey);
const claims = claimsOf(PAYLOAD_BYTES);
const token = signToken(claims, key);

// paseto-ts without its checks of claims, which no code here has to make up for: the bare protocol on both sides.
const bare = { addIat: false, addExp: false, validatePayload: false };
const theirSign = { ...bare, footer: { kid: key.kid } };
const json = JSON.stringify(claims);

const subjects = {
  'sign, presign': () => signToken(claims, key).length > 0,
  'sign, paseto-ts': () => sign(secret, json, theirSign).length > 0,
  'verify, presign': () => verifyToken(token, keys).ok,
  'verify, paseto-ts': () => verify(key.publicKey, token, bare).payload !== undefined,
  'refuse forged, presign': refuses((text) => verifyToken(text, keys).ok),
  'refuse 1 MB, presign': () => !verifyToken(megabyte, keys).ok,
};
const megabyte = `v4.public.${'A'.repeat(2 ** 20)}`;

printTable(measure());

/** Rounds of all subjects in turn, so that a slow moment of the machine falls on each of them alike. */
function measure(): Map<string, number[]> {
  const rounds = new Map(Object.keys(subjects).map((name) => [name, [] as number[]]));
  for (let round = -2; round < ROUNDS; round += 1) {
    for (const [name, run] of Object.entries(subjects)) {
      const micros = microsPerCall(run);
      if (round >= 0) rounds.get(name)?.push(micros);
    }
  }
  return rounds;
}

function microsPerCall(run: () => boolean): number {
  const start = performance.now();
  let calls = 0;
  let elapsed = 0;
  do {
    for (let n = 0; n < 5; n += 1) if (!run()) throw new Error('a benchmark subject gave the wrong answer');
    calls += 5;
    elapsed = performance.now() - start;
  } while (elapsed < ROUND_MS);
  return (elapsed / calls) * 1000;
}

function printTable(rounds: Map<string, number[]>): void {
  const median = (name: string) => quantile(rounds.get(name) ?? [], 0.5);
  const rows = [...rounds].map(([name, micros]) => ({
    what: name,
    'median µs': round(median(name)),
    'p10 µs': round(quantile(micros, 0.1)),
    'p90 µs': round(quantile(micros, 0.9)),
    'calls/s': Math.round(1e6 / median(name)),
  }));
  console.log(`Node ${process.version}, ${cpus()[0]?.model}, ${ROUNDS} interleaved rounds of ${ROUND_MS} ms`);
  console.log(`payload ${json.length} bytes, token ${token.length} characters`);
  console.table(rows);
  for (const verb of ['sign', 'verify']) {
    const ratio = median(`${verb}, paseto-ts`) / median(`${verb}, presign`);
    console.log(`${verb}: paseto-ts takes ${ratio.toFixed(1)} times as long`);
  }
}

function quantile(values: number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(q * (sorted.length - 1))] ?? Number.NaN;
}

function round(micros: number): number {
  return Number(micros.toPrecision(3));
}

function refuses(accepts: (token: string) => boolean): () => boolean {
  const forged = `${token.slice(0, 20)}${token.charAt(20) === 'A' ? 'B' : 'A'}${token.slice(21)}`;
  return () => !accepts(forged);
}

/** Claims as a grant has them, padded to the length of payload asked for. */
function claimsOf(bytes: number): Record<string, unknown> {
  const bare = {
    aud: 'https://gateway.example',
    exp: 1_900_003_600,
    iat: 1_900_000_000,
    iss: 'https://issuer.example',
    jti: '0198c0de-0000-7000-8000-000000000001',
    kind: 'llm',
    method: 'POST',
    paths: ['/v1/chat/completions'],
    provider: 'openai',
    sub: '0198c0de-0000-7000-8000-000000000002',
  };
  const path = `/${'x'.repeat(bytes - JSON.stringify(bare).length - 4)}`;
  return { ...bare, paths: [...bare.paths, path] };
}
