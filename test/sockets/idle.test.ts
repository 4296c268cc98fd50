import type { ChangedGrant, NewAccountAnswer, NewApiKeyAnswer, VirtualKeyAnswer } from '@presign/schema';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { flush } from '../harness/stores.ts';
import { send } from '../issuer/ask.ts';
import { createsOf, PROTOCOLS, type Served, type SocketProtocol, turn } from './protocols.ts';

let protocol: SocketProtocol;
let served: Served;
let stack: Stack;

const ask = async <T>(method: string, path: string, body?: object, apiKey = stack.apiKey): Promise<T> => {
  const sent = await send(stack, { method, path, apiKey, ...(body && { body }) });
  expect(sent.status, sent.text).toBeLessThan(300);
  return (sent.text === '' ? undefined : JSON.parse(sent.text)) as T;
};

/** A URL, and what happens while its socket is idle. */
type Case = { readonly url: string; readonly happens: () => Promise<unknown> };
type Issued = {
  readonly url: string;
  readonly grant_id: string;
  readonly session_id: string;
  readonly expires_at: number;
};

const issue = (more: object = {}, apiKey?: string): Promise<Issued> => {
  const key = 'virtual_key' in more ? {} : { client_api_key: 'sk-real' };
  return ask('POST', '/v1/presign', { ...protocol.asked, ...key, ...more }, apiKey);
};
const changed = (id: string, change: object) => ask<ChangedGrant>('PATCH', `/v1/grants/${id}`, change);
const secondsAhead = (seconds: number) => Math.ceil(Date.now() / 1000) + seconds;

const account = () => ask<NewAccountAnswer>('POST', '/v1/accounts', { name: 'customer' });
const apiKey = () => ask<NewApiKeyAnswer>('POST', '/v1/api-keys', { name: 'k', scopes: ['presign'] });
const virtualKey = () =>
  ask<VirtualKeyAnswer>('POST', '/v1/virtual-keys', { name: 'k', provider: 'openai', key: 'sk-real' });

/** A change of a URL that is issued with these fields. */
const change = async (fields: object, change: object): Promise<Case> => {
  const { url, grant_id } = await issue(fields);
  return { url, happens: () => changed(grant_id, change) };
};

/** A turn on another socket of the same user, whose budget has one use. */
const usesUp = async (url: string) => {
  const other = await protocol.open(url);
  expect(await turn(protocol, other)).toBe('done');
  other.socket.close();
};

/** Resolves once the gateway has looked for grants that have ended. */
async function looked(): Promise<void> {
  const { url, grant_id } = await issue();
  const holder = await protocol.open(url);
  await ask('DELETE', `/v1/grants/${grant_id}`);
  expect(await holder.closed).toMatchObject({ code: 4403 });
}

const EXPIRED = { code: 4401, reason: 'token_expired' };
const REVOKED = { code: 4403, reason: 'grant_revoked' };
const SUSPENDED = { code: 4403, reason: 'account_suspended' };

const CLOSES: readonly [string, () => Promise<Case>, object][] = [
  ['its token ends', async () => ({ ...(await issue({ expires_in: 6 })), happens: async () => {} }), EXPIRED],
  [
    'the end of its URL, which was brought forward, passes',
    async () => {
      const { url, grant_id } = await issue();
      return { url, happens: () => changed(grant_id, { expires_at: secondsAhead(4) }) };
    },
    EXPIRED,
  ],
  [
    'the end of all URLs of its session, which was brought forward, passes',
    async () => {
      const { url, session_id } = await issue();
      const happens = () =>
        ask('PATCH', `/v1/sessions/${session_id}`, { grants: { expires_at: secondsAhead(4) } });
      return { url, happens };
    },
    EXPIRED,
  ],
  [
    'its token ends, although its grant goes on with another',
    async () => {
      const { url, grant_id } = await issue({ expires_in: 8 });
      const happens = async () =>
        expect((await changed(grant_id, { expires_at: secondsAhead(3_600) })).url).toBeTruthy();
      return { url, happens };
    },
    EXPIRED,
  ],
  [
    'its URL is revoked',
    async () => {
      const { url, grant_id } = await issue();
      return { url, happens: () => ask('DELETE', `/v1/grants/${grant_id}`) };
    },
    REVOKED,
  ],
  [
    'its session is revoked',
    async () => {
      const { url, session_id } = await issue();
      return { url, happens: () => ask('DELETE', `/v1/sessions/${session_id}`) };
    },
    REVOKED,
  ],
  [
    'all URLs of its user are revoked',
    async () => {
      const { url } = await issue({ external_user: 'gone' });
      return { url, happens: () => ask('DELETE', '/v1/sessions?external_user=gone') };
    },
    REVOKED,
  ],
  [
    'all URLs of its API key are revoked',
    async () => {
      const { id, key } = await apiKey();
      const { url } = await issue({}, key);
      return { url, happens: () => ask('DELETE', `/v1/sessions?api_key=${id}`) };
    },
    REVOKED,
  ],
  [
    'its virtual key is deleted',
    async () => {
      const { id } = await virtualKey();
      const { url } = await issue({ virtual_key: id });
      return { url, happens: () => ask('DELETE', `/v1/virtual-keys/${id}`) };
    },
    REVOKED,
  ],
  [
    'its account is suspended',
    async () => {
      const { id, api_key } = await account();
      const { url } = await issue({}, api_key.key);
      return { url, happens: () => ask('POST', `/v1/accounts/${id}/suspend`) };
    },
    SUSPENDED,
  ],
  [
    'its account is deleted',
    async () => {
      const { id, api_key } = await account();
      const { url } = await issue({}, api_key.key);
      return { url, happens: () => ask('DELETE', `/v1/accounts/${id}`) };
    },
    SUSPENDED,
  ],
];

/** The outcome of the next turn, and the code with which the socket closes then. Undefined: it stays open. */
const STAYS: readonly [string, () => Promise<Case>, string, number | undefined][] = [
  [
    'its end is brought forward and put back',
    async () => {
      const { url, grant_id, expires_at } = await issue();
      const happens = async () => {
        const soon = secondsAhead(8);
        await changed(grant_id, { expires_at: soon });
        await looked();
        await changed(grant_id, { expires_at });
        await eventually(async () => Date.now() > soon * 1000);
      };
      return { url, happens };
    },
    'done',
    undefined,
  ],
  [
    'its uses are used up',
    async () => {
      const { url } = await issue({ max_uses: 1 });
      return { url, happens: () => usesUp(url) };
    },
    'uses_exhausted',
    4402,
  ],
  ['its uses are taken away', () => change({}, { max_uses: 0 }), 'uses_exhausted', 4402],
  [
    'its money is taken away',
    () => change({ cost_limit: protocol.muchMoney }, { cost_limit: 0 }),
    'cost_limit_reached',
    4402,
  ],
  [
    'a budget that it shares is used up',
    async () => {
      await ask('POST', '/v1/budgets', { scope: { external_user: 'spent' }, max_uses: 1 });
      const [{ url }, other] = [
        await issue({ external_user: 'spent' }),
        await issue({ external_user: 'spent' }),
      ];
      return { url, happens: () => usesUp(other.url) };
    },
    'uses_exhausted',
    4402,
  ],
  [
    'a used up window of its budget ends',
    async () => {
      const anchor = secondsAhead(15);
      const scope = { external_user: 'window' };
      await ask('POST', '/v1/budgets', { scope, max_uses: 1, window: 'hour', anchor });
      const { url } = await issue(scope);
      const happens = async () => {
        await usesUp(url);
        await eventually(async () => Date.now() > anchor * 1000 + 200);
      };
      return { url, happens };
    },
    'done',
    undefined,
  ],
  [
    'its API key is revoked, whose URLs go on',
    async () => {
      const { id, key } = await apiKey();
      const { url } = await issue({}, key);
      return { url, happens: () => ask('DELETE', `/v1/api-keys/${id}`) };
    },
    'done',
    undefined,
  ],
  [
    'its API key gets a policy that it does not meet',
    async () => {
      const { id, key } = await apiKey();
      const { url } = await issue({}, key);
      return { url, happens: () => ask('PATCH', `/v1/api-keys/${id}`, { policy: { sockets: false } }) };
    },
    'done',
    undefined,
  ],
  [
    'the key of its virtual key is rotated',
    async () => {
      const { id } = await virtualKey();
      const { url } = await issue({ virtual_key: id });
      return { url, happens: () => ask('POST', `/v1/virtual-keys/${id}/rotate`, { key: 'sk-other' }) };
    },
    'overloaded',
    1001,
  ],
];

describe.each(PROTOCOLS)('an idle socket of $name', (each) => {
  beforeAll(async () => {
    protocol = each;
    served = await protocol.start();
    stack = await startStack({ providers: { openai: { base_url: served.provider.url } } });
  });
  afterAll(async () => {
    await stack.close();
    await served.provider.close();
  });
  beforeEach(() => {
    served.provider.sockets.length = 0;
  });

  test.each(CLOSES)('closes when %s', async (_what, prepare, end) => {
    const { url, happens } = await prepare();
    const holder = await protocol.open(url);
    await happens();
    expect(await holder.closed).toEqual(end);
    expect(createsOf(served)).toEqual([]);
    await eventually(async () => (served.provider.sockets[0]?.socket.readyState ?? 0) > 1);
  });

  test.each(STAYS)(
    'stays open when %s, and its next turn is judged',
    async (_what, prepare, outcome, code) => {
      const { url, happens } = await prepare();
      const holder = await protocol.open(url);
      await happens();
      await looked();
      expect(holder.socket.readyState).toBe(1);
      expect(await turn(protocol, holder)).toBe(outcome);
      if (code === undefined) holder.socket.close();
      else expect(await holder.closed).toMatchObject({ code });
    },
  );

  test('closes at a changed end, even if Redis has lost it', async () => {
    const { url, grant_id } = await issue();
    const holder = await protocol.open(url);
    await changed(grant_id, { expires_at: secondsAhead(8) });
    await looked();
    await flush(stack.redis);
    expect(await holder.closed).toEqual(EXPIRED);
  });
});
