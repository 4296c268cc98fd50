import { generateSigningKey, readPublicKeys, readSigningKey, signToken } from '@presign/crypto';
import { BUILT_IN_PROVIDERS, BUNDLED_PRICES } from '@presign/providers';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { clientAddressReader } from '../src/grant/bind.ts';
import { NO_RULES } from '../src/grant/call-rules.ts';
import { llmVerifier } from '../src/grant/verify.ts';
import { EventSplitter } from '../src/http/sse.ts';
import { Abridger } from '../src/json/abridge.ts';
import { NameTree } from '../src/json/names.ts';
import { MODEST, readContent, scanBody } from '../src/llm/body.ts';
import { splitUrl } from '../src/llm/match.ts';
import { planCall } from '../src/llm/plan.ts';
import { ToolFilter } from '../src/mcp/answer/tool-list.ts';
import { readMessages } from '../src/mcp/request/messages.ts';
import { readMcpUrl } from '../src/mcp/request/request.ts';
import { BODIES, FORWARDED, LISTS, MESSAGES, STREAMS } from './corpus.ts';

/** `pnpm test` and `pnpm test:all`. fast-check prints the seed and the path of a failure. */
const RUNS = process.env.TEST_ALL ? 20_000 : 500;

/** Bytes near one of these texts: some bytes changed, a part repeated or cut out. */
function near(texts: readonly string[]): fc.Arbitrary<Buffer> {
  const change = fc.record({
    at: fc.nat(),
    length: fc.nat(12),
    to: fc.uint8Array({ maxLength: 6 }),
    times: fc.nat(3),
  });
  return fc.tuple(fc.constantFrom(...texts), fc.array(change, { maxLength: 4 })).map(([text, changes]) =>
    changes.reduce((bytes: Buffer, { at, length, to, times }) => {
      const from = at % (bytes.length + 1);
      const part = bytes.subarray(from, from + length);
      return Buffer.concat([
        bytes.subarray(0, from),
        ...Array(times).fill(part),
        to,
        bytes.subarray(from + length),
      ]);
    }, Buffer.from(text)),
  );
}
const cuts = fc.array(fc.nat(), { maxLength: 5 });
function pieces(bytes: Buffer, at: readonly number[]): Buffer[] {
  const ends = [0, ...at.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length];
  return ends.slice(1).map((end, i) => bytes.subarray(ends[i], end));
}

describe('tokens', () => {
  const key = readSigningKey(generateSigningKey());
  const deps = {
    publicKeys: readPublicKeys(key.publicKey),
    gatewayUrl: 'https://gateway.example',
    now: () => Date.parse('2026-01-01T00:00:00Z'),
    providers: BUILT_IN_PROVIDERS,
  };
  const claims = {
    jti: '6f1f1bd5-59ba-4f3c-8ba6-5f5f5f5f5f5f',
    sub: '6f1f1bd5-59ba-4f3c-8ba6-5f5f5f5f5f5e',
    iat: '2026-01-01T00:00:00Z',
    exp: '2026-01-02T00:00:00Z',
    iss: 'https://issuer.example',
    aud: deps.gatewayUrl,
    prt: 1,
    ...{ knd: 'llm', prv: 'openai', mth: 'POST', pth: ['/v1/chat/completions'] },
  };

  test('only the signed token is accepted, and no other text makes the verifier throw', () => {
    const token = signToken(claims, key);
    expect(llmVerifier(deps)(token)).toHaveProperty('grant');
    fc.assert(
      fc.property(fc.oneof(near([token]), near(['', 'v4.public.', token.slice(0, 40)])), (bytes) => {
        const text = bytes.toString('latin1');
        const { token: found = '' } = splitUrl(`/llm/t/${text}/v1/chat/completions`);
        for (const each of [text, found]) {
          if (each !== token) expect(llmVerifier(deps)(each)).toHaveProperty('refusal');
        }
      }),
      { numRuns: RUNS },
    );
  });

  test('an unknown claim is refused, because it may be a restriction', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), fc.jsonValue(), (name, value) => {
        fc.pre(!(name in claims) && name !== 'mdl' && name !== '__proto__');
        expect(llmVerifier(deps)(signToken({ ...claims, [name]: value }, key))).toHaveProperty('refusal');
      }),
      { numRuns: RUNS / 5 },
    );
  });
});

describe('bodies of LLM calls', () => {
  const routes = [...BUILT_IN_PROVIDERS.values()].flatMap((provider) =>
    provider.routes.map(({ path }) => ({
      provider,
      path: path.replace('*', 'gemini-2.5-flash:generateContent').replace('*', 'x'),
    })),
  );

  test('any body is refused, or planned with a hold in whole microdollars', () => {
    fc.assert(
      fc.property(near(BODIES), fc.constantFrom(...routes), (raw, { provider, path }) => {
        const names = new NameTree([['model'], ['max_tokens']]);
        const read = readContent(raw, 'must', scanBody(raw, 'must', names, MODEST));
        if ('refusal' in read) return;
        const target = { path, query: '' };
        const planned = planCall({
          ...{ grant: { provider, method: 'POST' }, target, rules: NO_RULES, limited: { costLimited: true } },
          ...{ content: read.content, at: { prices: BUNDLED_PRICES, now: 0 } },
        });
        if ('refusal' in planned) return;
        const { hold } = planned.plan;
        expect(hold && Number.isSafeInteger(hold.fixedMicrousd) && hold.fixedMicrousd >= 0).toBe(true);
        expect(Number.isSafeInteger((hold?.askedTokens ?? 0) * (hold?.ratePerMtok ?? 0))).toBe(true);
      }),
      { numRuns: RUNS },
    );
  });
});

describe('answers', () => {
  test('a splitter returns every byte in order, wherever a stream is cut', () => {
    fc.assert(
      fc.property(
        near(STREAMS),
        cuts,
        fc.constantFrom('line' as const, 'blank line' as const),
        (bytes, at, end) => {
          const splitter = new EventSplitter({ end });
          const events = pieces(bytes, at).flatMap((piece) => splitter.push(piece));
          expect(Buffer.concat([...events, splitter.rest()]).equals(bytes)).toBe(true);
        },
      ),
      { numRuns: RUNS },
    );
  });

  test('the shortened text depends on the bytes, and not on where they are cut', () => {
    fc.assert(
      fc.property(near(BODIES), cuts, (bytes, at) => {
        const [whole, cut] = [new Abridger(), new Abridger()];
        whole.push(bytes);
        for (const piece of pieces(bytes, at)) cut.push(piece);
        expect(cut.end()).toEqual(whole.end());
      }),
      { numRuns: RUNS },
    );
  });
});

describe('MCP', () => {
  test('any body is refused, or read as one message or as a batch of at most a hundred', () => {
    fc.assert(
      fc.property(near(MESSAGES), (bytes) => {
        const read = readMessages(bytes);
        if ('refusal' in read) return;
        const { all, isBatch } = read.messages;
        expect(all.length).toBeLessThanOrEqual(isBatch ? 100 : 1);
        for (const { id, method, name } of all) {
          expect(['string', 'number', 'undefined']).toContain(typeof id);
          for (const each of [method, name]) expect(['string', 'undefined']).toContain(typeof each);
        }
      }),
      { numRuns: RUNS },
    );
  });

  test('any request target is refused, or names one server and one token', () => {
    fc.assert(
      fc.property(near(['/mcp/mcp?url=https%3A%2F%2Fa.example&token=v4.public.x&ep=y']), (bytes) => {
        const found = readMcpUrl(bytes.toString('latin1'));
        if (found) expect([typeof found.url, typeof found.token]).toEqual(['string', 'string']);
      }),
      { numRuns: RUNS },
    );
  });

  test('a filtered answer never contains a hidden tool, for any JSON parser', () => {
    const filter = new ToolFilter(['shown']);
    fc.assert(
      fc.property(near(LISTS), (bytes) => {
        const shown = filter.body(bytes);
        if (shown && !shown.equals(bytes)) expect(filter.body(shown)).toEqual(shown);
        for (const message of readAll(shown)) {
          const listed = message?.result?.tools;
          if (Array.isArray(listed)) for (const tool of listed) expect(tool?.name).toBe('shown');
        }
      }),
      { numRuns: RUNS },
    );
  });
});

/** The messages of an answer as a client reads them. None if it is not JSON. */
function readAll(bytes: Buffer | undefined) {
  try {
    return [JSON.parse(new TextDecoder().decode(bytes))].flat();
  } catch {
    return [];
  }
}

test('the address of a client is that of the connection, or the last one in X-Forwarded-For that is not trusted', () => {
  const read = clientAddressReader(['10.0.0.0/8']);
  fc.assert(
    fc.property(near(FORWARDED), fc.constantFrom('10.0.0.1', '203.0.113.9'), (bytes, remoteAddress) => {
      const header = bytes.toString('latin1');
      const address = read({ headers: { 'x-forwarded-for': header }, socket: { remoteAddress } });
      if (remoteAddress === '203.0.113.9') expect(address).toBe(remoteAddress);
      else if (address !== undefined && address !== remoteAddress) {
        const entries = header.split(',').reverse();
        const at = entries.findIndex((entry) => !isTrusted(entry));
        expect((entries[at] ?? entries.at(-1) ?? '').includes(address)).toBe(true);
      }
    }),
    {
      numRuns: RUNS,
      examples: [[Buffer.from('[2001:db8::7]:443,0::ffff:10.0.0.1'), '10.0.0.1']],
    },
  );
});

/** Whether an entry is an address of 10.0.0.0/8, however IPv6 writes it. */
function isTrusted(entry: string): boolean {
  const text = /^\s*(?:\[(.*)\]|([^[\]]*?))(?::\d+)?\s*$/.exec(entry);
  const address = text?.[1] ?? text?.[2] ?? '';
  if (/^10\.[\d.]+$/.test(address)) return true;
  const url = `http://[${entry.trim().replace(/^\[|\](?::\d+)?$/g, '')}]`;
  return URL.canParse(url) && /^\[::ffff:a[\da-f]{2}:/.test(new URL(url).hostname);
}
