import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { claimsOf, issue, least, refused, send } from './ask.ts';

let stack: Stack;
let upstream: Upstream;

beforeAll(async () => {
  upstream = await startUpstream();
  stack = await startStack({ providers: { openai: { base_url: upstream.url } } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

describe('paths', () => {
  test('one token serves all paths of its grant, wildcards included, and no other path', async () => {
    const { url } = await issue(stack, { path: ['/v1/a', '/v1/*/b'] });
    const at = (path: string) =>
      fetch(url.replace('/v1/a', path), { method: 'POST' }).then((answer) => answer.status);
    expect(await at('/v1/a')).toBe(200);
    expect(await at('/v1/x/b')).toBe(200);
    expect(await at('/v1/x/y/b')).toBe(403);
    expect(await at('/v1/c')).toBe(403);
  });

  test('an encoded slash is part of an id at a provider with such ids, and refused elsewhere', async () => {
    const key = JSON.stringify({
      access_key_id: 'AKIAIOSFODNN7EXAMPLE',
      secret_access_key: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
      region: 'us-east-1',
    });
    const arn = encodeURIComponent(
      'arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc',
    );
    const paths = [`/model/${arn}/converse`, '/model/*/converse'];
    const issued = await send(stack, {
      body: { ...least, provider: 'bedrock', client_api_key: key, path: paths },
    });
    expect(issued.status, issued.text).toBe(200);
    const elsewhere = await send(stack, { body: { ...least, path: `/model/${arn}/converse` } });
    expect(refused(elsewhere, 'invalid_request', 'path')).toContain('must not contain the encoded form %2F');
  });

  const bad = [
    ['v1/x', 'must start with /'],
    ['', 'must start with /'],
    ['/v1/../x', 'must not contain'],
    ['/v1/a..b', 'must not contain ..'],
    ['/v1/./x', 'must not contain . or'],
    ['/v1//x', 'must not contain //'],
    ['//host/x', 'must not contain //'],
    ['/v1\\x', 'must not contain'],
    ['/v1/x?a=1', 'must not contain ?'],
    ['/v1/x#a', 'must not contain #'],
    ['/v1/a b', 'must not contain spaces'],
    ['/v1/\n', 'must not contain control characters'],
    ['/v1/\0', 'must not contain control characters'],
    ['/v1/\u007f', 'must not contain control characters'],
    ['/v1/ü', 'must not contain characters outside ASCII'],
    ['/v1/%2e%2e/x', 'must not contain the encoded form'],
    ['/v1/%2E%2E/x', 'must not contain the encoded form'],
    ['/v1/%2f', 'must not contain the encoded form %2f'],
    ['/v1/%5c', 'must not contain the encoded form'],
    ['/v1/%3f', 'must not contain the encoded form'],
    ['/v1/%23', 'must not contain the encoded form'],
    ['/v1/%00', 'must not contain the encoded form'],
    ['/v1/%0d%0a', 'must not contain the encoded form'],
    ['/v1/%25', 'must not contain the encoded form'],
    ['/v1/%', 'contains % without'],
    ['/v1/%zz', 'contains % without'],
    ['/v1/%ff', 'not UTF-8'],
  ] as const;
  test.each(bad)('%j is refused and named, alone and among others', async (path, problem) => {
    const alone = await send(stack, { body: { ...least, path } });
    expect(refused(alone, 'invalid_request', 'path')).toMatch(new RegExp(`^path: .*${quoted(problem)}`));
    const second = await send(stack, { body: { ...least, path: ['/v1/ok', path] } });
    expect(refused(second, 'invalid_request', 'path[1]')).toMatch(
      new RegExp(`^path\\[1\\]: .*${quoted(problem)}`),
    );
  });

  test('a first path with a wildcard is refused, because the URL that ends in it cannot be called', async () => {
    refused(await send(stack, { body: { ...least, path: '/v1/*' } }), 'invalid_request', 'path');
    refused(
      await send(stack, { body: { ...least, path: ['/v1/*', '/v1/a'] } }),
      'invalid_request',
      'path[0]',
    );
    await issue(stack, { path: ['/v1/a', '/v1/*'] });
  });

  test('a model in config that no path allows is refused', async () => {
    const ask = { ...least, provider: 'google', config: { model: 'gemini-2.5-pro' } };
    const path = '/v1beta/models/gemini-2.5-flash:generateContent';
    const sent = await send(stack, { body: { ...ask, path } });
    expect(refused(sent, 'invalid_request', 'config.model')).toContain(path);
    const allowed = '/v1beta/models/gemini-2.5-pro:generateContent';
    const { url } = await issue(stack, { ...ask, path: [allowed] });
    expect(claimsOf(stack, url)).toMatchObject({ mdl: 'gemini-2.5-pro' });
  });
});

describe('provider', () => {
  test.each(['openai', 'anthropic', 'google', 'cohere', 'groq'])('%s is known', async (provider) => {
    await issue(stack, { provider });
  });

  test('that is unknown is refused, and the message lists the known ones', async () => {
    for (const provider of ['opneai', 'OpenAI', '__proto__', 'sk-marked-by-mistake']) {
      const message = refused(
        await send(stack, { body: { ...least, provider } }),
        'unknown_provider',
        'provider',
      );
      expect(message).toMatch(/^provider: expected one of .*openai, anthropic/);
      expect(message).not.toContain('sk-marked');
    }
  });

  test('that needs an address from the operator is refused with this reason', async () => {
    const sent = await send(stack, { body: { ...least, provider: 'azure-openai' } });
    expect(refused(sent, 'unknown_provider', 'provider')).toMatch(/base_url.*PROVIDERS_FILE/);
  });
});

const quoted = (text: string) => text.replace(/[.?*+]/g, '\\$&');
