import type { Readiness } from '@presign/service';
import { request } from 'undici';
import { expect, test } from 'vitest';
import { startProviders } from '../gateway/providers.ts';
import { eventually } from '../harness/eventually.ts';
import { startStack } from '../harness/stack.ts';
import { claimsOf } from '../issuer/ask.ts';

const HOUR = 3_600;

// A server of Redis whose clock is ahead by an hour sees services whose clocks are an hour behind.
test.each([
  ['ahead of', HOUR, 'token_expired'],
  ['behind', -HOUR, 200],
] as const)(
  'a clock of Redis an hour %s that of all services changes no limit and no revocation',
  async (_is, off, shortUrl) => {
    const providers = await startProviders();
    const clock = { now: () => Date.now() - off * 1_000 };
    const stack = await startStack({ providers: providers.file, gateway: clock, issuer: clock });
    const ask = { provider: 'openai', path: '/v1/x', client_api_key: 'sk-real', max_uses: 2 };
    const call = async (url: string) => {
      const answer = await request(url, { method: 'POST', body: '{}' });
      const body = (await answer.body.json()) as { error?: { code: string } };
      return body.error?.code ?? answer.statusCode;
    };
    const { url } = await stack.issue({ ...ask, expires_in: 4 * HOUR });
    expect([await call(url), await call(url), await call(url)]).toEqual([200, 200, 'uses_exhausted']);
    // Redis opens no URL that has expired by its clock.
    const { url: short } = await stack.issue({ ...ask, expires_in: 600 });
    expect(await call(short)).toBe(shortUrl);
    const { url: revoked } = await stack.issue({ ...ask, expires_in: 4 * HOUR });
    const { statusCode } = await request(`${stack.issuerUrl}/v1/grants/${claimsOf(stack, revoked).jti}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${stack.apiKey}` },
    });
    expect([statusCode, await call(revoked)]).toEqual([204, 'grant_revoked']);
    const far = async () => {
      const answer = await fetch(`${stack.gatewayUrls[0]}/readyz`);
      return ((await answer.json()) as Readiness).problems.find(({ store }) => store === 'clock');
    };
    // The gateway looks at the clock in the background.
    expect((await eventually(far)).problem).toMatch(/ahead|behind/);
    await stack.close();
    await providers.close();
  },
);
