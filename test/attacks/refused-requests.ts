import type { ErrorCode, RefusalReason } from '@presign/schema';

/** A part of something at its documented maximum: the half of it, or all. */
export type Share = 0.5 | 1;
export const count = (most: number, share: Share) => Math.floor(most * share);
/** All are of one length, so that half of them are half of their bytes. */
export const fields = (most: number, share: Share, prefix = 'f') =>
  Object.fromEntries(
    Array.from({ length: count(most, share) }, (_, i) => [`${prefix}${FIRST + i}`, FIRST + i]),
  );
const FIRST = 1_000;

/** A config of 20 levels with names near the limits of a config: 16 KB in all. */
const deepConfig = () => {
  let inner: object = fields(150, 1, 'k');
  for (let level = 0; level < 20; level++) inner = { [`level_${level}_${'n'.repeat(240)}`]: inner };
  return inner;
};
const LIGATURE = '\ufdfa';
export const GEMINI = { provider: 'google', path: '/v1beta/models/gemini-2.5-flash:generateContent' };
export const chat = (more: object = {}) => ({ model: 'gpt-4o-mini', messages: [], ...more });

/** A body that is refused. */
type RefusedBody = {
  readonly what: string;
  readonly code: ErrorCode;
  /** The fields of the URL that refuses it. */
  readonly ask: object;
  readonly body: (share: Share) => string;
};

/** Bodies of 2,000 parts and 64 KB at most are read by the thread that serves everyone. */
export const LLM_BODIES: readonly RefusedBody[] = [
  {
    what: 'fields for Gemini, under a config of short fields',
    code: 'invalid_request',
    ask: { ...GEMINI, config: fields(200, 1) },
    body: (share) => JSON.stringify({ contents: [], ...fields(900, share, 'h'), [`F${FIRST}`]: 1 }),
  },
  {
    what: 'spellings of one field for Gemini',
    code: 'invalid_request',
    ask: { ...GEMINI, config: { max_tokens: 5, generationConfig: fields(900, 1) } },
    body: (share) => {
      const spelt = (i: number) => `generation${'_'.repeat(1_000 + i)}config`;
      const objects = Array.from({ length: count(40, share) }, (_, i) => [spelt(i), fields(20, 1)]);
      return JSON.stringify({ ...Object.fromEntries(objects), MAX_TOKENS: 1 });
    },
  },
  {
    what: 'names below a config of depth 20',
    code: 'invalid_request',
    ask: { config: deepConfig() },
    body: (share) => {
      const path = Array.from({ length: 20 }, (_, i) => `"level_${19 - i}_${'n'.repeat(240)}":{`).join('');
      return `{${path}${JSON.stringify(fields(900, share, 'h')).slice(1, -1)},"K${FIRST + 1}":1${'}'.repeat(21)}`;
    },
  },
  {
    what: 'fields that are not allowed',
    code: 'field_not_allowed',
    ask: { allowed_fields: Array.from({ length: 100 }, (_, i) => `a${FIRST + i}`) },
    body: (share) => JSON.stringify({ ...fields(100, 1, 'a'), ...fields(1_800, share, 'h') }),
  },
  {
    what: 'tools with other models',
    code: 'model_not_allowed',
    ask: { models: Array.from({ length: 50 }, (_, i) => (i === 49 ? 'gpt-4o-mini' : `m${i}`)) },
    body: (share) => {
      const tools = Array.from({ length: count(600, share) }, () => ({ model: 'm1' }));
      return JSON.stringify(chat({ tools: [...tools, { model: 'x' }] }));
    },
  },
  {
    what: 'messages whose cost has no bound',
    code: 'cost_unbounded',
    ask: { cost_limit: 1_000_000_000 },
    body: (share) => {
      const messages = Array.from({ length: count(500, share) }, () => ({ role: 'user', content: 'x' }));
      return JSON.stringify(chat({ messages, surprise: 1 }));
    },
  },
];

export const toolCall = (name: string, more: object = {}) => ({
  ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
  params: { name, arguments: {}, ...more },
});
const longNames = (most: number) =>
  Array.from({ length: most }, (_, i) => `${LIGATURE.repeat(27)}${String.fromCharCode(0x4e00 + i)}`);

export const MCP_BODIES: readonly RefusedBody[] = [
  {
    what: 'tools that are not allowed',
    code: 'tool_not_allowed',
    ask: { tools: longNames(500) },
    body: (share) =>
      JSON.stringify([
        ...Array.from({ length: count(98, share) }, (_, i) => toolCall(longNames(500)[i] ?? '')),
        toolCall('x'),
      ]),
  },
  {
    what: 'names like those that have a price',
    code: 'invalid_request',
    ask: { pricing: { tools: Object.fromEntries([...longNames(100), 'deep'].map((name) => [name, 1])) } },
    body: (share) =>
      JSON.stringify([
        ...Array.from({ length: count(98, share) }, (_, i) => toolCall(`${LIGATURE.repeat(60)}${i}`)),
        toolCall('Deep'),
      ]),
  },
  {
    what: 'arguments of a tool with conditions',
    code: 'argument_not_allowed',
    ask: { arguments: { t: Object.fromEntries(longNames(20).map((name) => [name, { equals: 1 }])) } },
    body: (share) =>
      JSON.stringify(
        Array.from({ length: count(98, share) }, () =>
          toolCall('t', { arguments: { [LIGATURE.repeat(20)]: 1 } }),
        ),
      ),
  },
];

/** The URLs and states that the entries of the table ask for. */
export type World = {
  readonly llm: (more?: object) => Promise<string>;
  readonly mcp: (more?: object) => Promise<string>;
  /** The same URL with other claims, signed by the issuer's key or by another one. */
  readonly signed: (url: string, claims: object, by?: 'issuer' | 'another') => string;
  readonly call: (url: string, body?: object) => Promise<unknown>;
  /** Calls a URL at an upstream that does not answer, until the call is under way. */
  readonly hang: (url: string) => Promise<unknown>;
  readonly revoke: (url: string) => Promise<unknown>;
  /** A URL of an account that was suspended. */
  readonly suspended: () => Promise<string>;
  /** A new user whose calls may use so many tokens in all. */
  readonly tokens: (most: number) => Promise<{ readonly external_user: string }>;
  /** The same URL at a gateway that trusts this machine as a proxy, and at one with little memory. */
  readonly behindProxy: (url: string) => string;
  readonly atLittleMemory: (url: string) => string;
};

/** A request as it is sent. Without a `Content-Length` of its own it states the length of its body. */
export type Raw = {
  readonly url: string;
  readonly method?: string;
  readonly version?: string;
  readonly headers?: readonly string[];
  readonly body?: string;
};

/** A refusal, and a request that meets it, with its input at its maximum or at half of that. */
export type Refused = {
  readonly what: string;
  readonly request: (world: World) => Promise<(share: Share) => Raw>;
};

/** Node reads 16 KB of a request's line and headers. A token and its path take a part of them. */
export const HEAD = 12_000;
export const long = (share: Share, letter = 'x', most = HEAD) => letter.repeat(count(most, share));
export const json = 'Content-Type: application/json';

/** A chat of many messages. */
export const talk = (share: Share, more: object = {}) =>
  JSON.stringify(
    chat({
      messages: Array.from({ length: count(400, share) }, () => ({ role: 'user', content: 'x' })),
      max_tokens: 100,
      ...more,
    }),
  );

/** A request with a URL; a chat, if nothing else is said. */
export const met = (
  what: string,
  urlOf: (world: World) => Promise<string>,
  raw: (url: string, share: Share) => Raw = (url, share) => ({ url, headers: [json], body: talk(share) }),
): Refused => ({
  what,
  request: async (world) => {
    const url = await urlOf(world);
    return (share) => raw(url, share);
  },
});

/** A chat with an LLM URL that was issued with these fields, and used like this. */
export const talksAfter = (
  what: string,
  ask: object,
  first?: (world: World, url: string) => unknown,
): Refused =>
  met(what, async (world) => {
    const url = await world.llm(ask);
    await first?.(world, url);
    return url;
  });

export const ofLlm = (what: string, raw: (url: string, share: Share) => Raw, ask: object = {}): Refused =>
  met(what, ({ llm }) => llm(ask), raw);
export const ofMcp = (what: string, raw: (url: string, share: Share) => Raw, ask: object = {}): Refused =>
  met(what, ({ mcp }) => mcp(ask), raw);

/** A token with claims of this length. */
export const claimed = (claims: (share: Share) => object, by?: 'issuer' | 'another'): Refused['request'] => {
  return async (world) => {
    const url = await world.llm();
    return (share) => ({ url: world.signed(url, claims(share), by), headers: [json], body: '{}' });
  };
};
export const paths = (share: Share) => ({ pth: [`/v1/${long(share, 'p', 1_400)}`] });
const inToken = (url: string, token: string) => url.replace(/v4\.public\.[^/&]+/, token);

/** Why a token is refused. The type has each reason. */
export const TOKENS: Readonly<Record<RefusalReason, Refused['request']>> = {
  too_long: async ({ llm }) => {
    const url = await llm();
    return (share) => ({ url: inToken(url, `v4.public.${long(share)}`) });
  },
  malformed: async ({ llm }) => {
    const url = await llm();
    return (share) => ({ url: inToken(url, long(share, 'x.', 1_500)) });
  },
  unknown_key: claimed(paths, 'another'),
  bad_signature: async ({ llm, signed }) => {
    const url = await llm();
    return (share) => ({ url: signed(url, paths(share)).replace('v4.public.ey', 'v4.public.ez') });
  },
  other_kind: claimed((share) => ({ knd: 'x', ...paths(share) })),
  other_gateway: claimed((share) => ({ aud: 'http://other.example', ...paths(share) })),
  issued_in_the_future: claimed((share) => ({ iat: '2199-01-01T00:00:00Z', ...paths(share) })),
  no_such_grant: claimed(() => ({ jti: crypto.randomUUID(), pth: ['/v1/chat/completions'] })),
  incomplete_url: async ({ mcp }) => {
    const url = new URL(await mcp());
    return (share) => ({ url: `${url.origin}/mcp/mcp?${long(share, 'a&', HEAD / 2)}` });
  },
  other_server: async ({ mcp }) => {
    const url = await mcp();
    return (share) => ({ url: url.replace(/url=[^&]+/, `url=http://${long(share)}`) });
  },
};
