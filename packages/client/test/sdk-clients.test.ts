import { expect, expectTypeOf, test } from 'vitest';
import { json, pretendIssuer } from './issuer.ts';

const WANTED = { provider: 'openai', path: '/v1/chat/completions' };
const TOKEN = 'https://gateway.example.com/llm/t/v4.public.a';

type Options = { apiKey?: string; baseURL?: string; timeout?: number; httpOptions?: object };
/** The class of an SDK, which shows its options. */
class Sdk {
  readonly given: Options;
  constructor(options: Options = {}) {
    this.given = options;
  }
  call(): string {
    return 'called';
  }
}

async function issued(path: string) {
  const { presign } = await pretendIssuer([json(200, { url: TOKEN + path, grant_id: 'g' })]);
  return presign.presign(WANTED);
}

test('an issued URL creates clients of the given classes, with further options', async () => {
  const openai = (await issued('/v1/chat/completions')).openai(Sdk, { timeout: 10 });
  expectTypeOf(openai).toEqualTypeOf<Sdk>();
  expect(openai.call()).toBe('called');
  expect(openai.given).toEqual({ baseURL: `${TOKEN}/v1`, apiKey: 'presigned', timeout: 10 });
  const anthropic = (await issued('/v1/messages')).anthropic(Sdk);
  expect(anthropic.given).toEqual({ baseURL: TOKEN, apiKey: 'presigned' });
  const google = (await issued('/v1beta/models/x:generateContent')).google(Sdk, {
    httpOptions: { timeout: 9 },
  });
  expect(google.given).toEqual({
    apiKey: 'presigned',
    httpOptions: { baseUrl: TOKEN, apiVersion: 'v1beta', timeout: 9 },
  });
});

test('a client always has the key and the address of the URL, whatever options it is given', async () => {
  const { given } = (await issued('/v1/x')).openai(Sdk, {
    apiKey: 'sk-real',
    baseURL: 'https://api.example',
  });
  expect(given).toEqual({ baseURL: `${TOKEN}/v1`, apiKey: 'presigned' });
});

test('an issued URL serialized as JSON, or copied, is the answer alone', async () => {
  const answer = await issued('/v1/x');
  const plain = { url: `${TOKEN}/v1/x`, grant_id: 'g' };
  expect(JSON.parse(JSON.stringify(answer))).toEqual(plain);
  expect(Object.keys(answer)).toEqual(Object.keys(plain));
  expect(structuredClone(answer)).toEqual(plain);
});
