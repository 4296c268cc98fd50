import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** A request that reached the token endpoint. */
export type TokenRequest = {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly form: Readonly<Record<string, string>>;
};

/** Its answer instead of tokens: a status with a body, or anything at all. */
export type Misbehaviour = (request: TokenRequest, response: ServerResponse) => unknown;

export type AuthorizationServer = {
  readonly url: string;
  readonly requests: readonly TokenRequest[];
  /** Seconds; undefined: the server does not report it. */
  expiresIn: number | undefined;
  /** Whether each refresh ends its refresh token and gives a new one. */
  rotates: boolean;
  /** Undefined: it gives tokens; returning anything but `false` answers in its place. */
  misbehaves: Misbehaviour | undefined;
  /** Members of every answer with tokens. */
  readonly extra: Record<string, unknown>;
  /** The refresh token that is good now. */
  refreshToken: string;
  /** Requests wait until the returned function lets them go. */
  readonly hold: () => () => void;
  /** Settles when so many requests have come. */
  readonly reached: (count: number) => Promise<void>;
  readonly close: () => void;
};

/** A token endpoint on a real socket that counts requests, rotates tokens, and misbehaves if a test says so. */
export async function startAuthorizationServer(): Promise<AuthorizationServer> {
  const requests: TokenRequest[] = [];
  let held: Promise<void> = Promise.resolve();
  let tokens = 0;
  const server = createServer(async (incoming, response) => {
    const form = Object.fromEntries(new URLSearchParams(await text(incoming)));
    const request = { url: incoming.url ?? '', headers: incoming.headers, form };
    requests.push(request);
    await held;
    if (self.misbehaves && self.misbehaves(request, response) !== false) return;
    const isRefresh = form.grant_type === 'refresh_token';
    if (isRefresh && form.refresh_token !== self.refreshToken) {
      return answerJson(response, 400, { error: 'invalid_grant', error_description: DESCRIPTION });
    }
    tokens++;
    if (isRefresh && self.rotates) self.refreshToken = `refresh-token-${tokens}`;
    answerJson(response, 200, {
      access_token: `access-token-${tokens}`,
      token_type: 'Bearer',
      ...(self.expiresIn === undefined ? {} : { expires_in: self.expiresIn }),
      ...(isRefresh && self.rotates ? { refresh_token: self.refreshToken } : {}),
      ...self.extra,
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const self: AuthorizationServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`,
    requests,
    expiresIn: 3600,
    rotates: true,
    misbehaves: undefined,
    extra: {},
    refreshToken: 'refresh-token-0',
    hold: () => {
      let release = () => {};
      held = new Promise((resolve) => {
        release = resolve;
      });
      return release;
    },
    reached: async (count) => {
      while (requests.length < count) await new Promise((resolve) => setTimeout(resolve, 5));
    },
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
  return self;
}

/** Says, as real servers do, what should not be passed on. */
export const DESCRIPTION = 'description-that-quotes-client-secret-0';

export function answerJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
