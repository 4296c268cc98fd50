import { readPublicKeys, verifyToken } from '@presign/crypto';
import {
  ERRORS,
  type ErrorBody,
  type ErrorCode,
  type LlmClaims,
  llmClaims,
  type PresignAnswer,
} from '@presign/schema';
import { expect } from 'vitest';
import { undocumented } from '../harness/documented.ts';
import type { Stack } from '../harness/stack.ts';

/** The least a request needs. */
export const least = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-upstream' };

export type Sent = { readonly status: number; readonly headers: Headers; readonly text: string };

type Request = {
  readonly method?: string;
  readonly path?: string;
  readonly apiKey?: string | undefined;
  readonly headers?: Record<string, string>;
  /** Sent as it is; an object as JSON. */
  readonly body?: object | string | Uint8Array;
};

/** One request to an issuer, of any kind; without a body by default. Its answer must be as the API's document has it. */
export async function send(stack: Pick<Stack, 'issuerUrl' | 'apiKey'>, request: Request): Promise<Sent> {
  const { method = 'POST', path = '/v1/presign', body, headers = {} } = request;
  const apiKey = 'apiKey' in request ? request.apiKey : stack.apiKey;
  const raw = typeof body === 'object' && !(body instanceof Uint8Array) ? JSON.stringify(body) : body;
  const response = await fetch(`${stack.issuerUrl}${path}`, {
    method,
    headers: {
      'content-type': 'application/json',
      ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
      ...headers,
    },
    ...(raw === undefined ? {} : { body: raw }),
  });
  const { status, headers: answered } = response;
  const sent = { status, headers: answered, text: await response.text() };
  expect(undocumented({ method, path, ...sent }), `${method} ${path}: ${sent.text}`).toBeUndefined();
  return sent;
}

/** Sends a request that must succeed, `least` with these fields over it. */
export async function issue(
  stack: Stack,
  fields: object,
  headers: Record<string, string> = {},
): Promise<PresignAnswer> {
  const sent = await send(stack, { body: { ...least, ...fields }, headers });
  expect(sent.status, sent.text).toBe(200);
  return JSON.parse(sent.text) as PresignAnswer;
}

/** Checks that an answer is the documented envelope of a refusal, to the letter; returns its message. */
export function refused(sent: Sent, code: ErrorCode, param: string | null = null): string {
  const body = JSON.parse(sent.text) as ErrorBody;
  expect(body.error, sent.text).toMatchObject({ code, param });
  expect(sent.status).toBe(ERRORS[code][0]);
  expect(Object.keys(body)).toEqual(['error']);
  const { problems, ...error } = body.error;
  expect(Object.keys(error).sort()).toEqual(['code', 'message', 'param', 'request_id', 'type']);
  // The first problem is the one that the error states.
  if (problems) expect(problems[0]).toEqual({ param, message: error.message });
  expect(body.error.type).toBe(ERRORS[code][1]);
  expect(body.error.message).toMatch(/.\.$/);
  expect(body.error.request_id).toMatch(/^[0-9a-f-]{36}$/);
  expect(sent.headers.get('x-request-id')).toBe(body.error.request_id);
  expect(sent.headers.get('content-type')).toBe('application/json');
  return body.error.message;
}

/** The token of an issued URL. */
export const tokenOf = (url: string): string => /\/t\/([^/]+)/.exec(url)?.[1] ?? '';

/** The claims of an issued URL's token, its signature checked as a gateway does. */
export function claimsOf(stack: Stack, url: string): LlmClaims {
  const verified = verifyToken(tokenOf(url), readPublicKeys(stack.keys.publicKeys));
  if (!verified.ok) throw new Error(`the token is refused: ${verified.reason}`);
  return llmClaims.parse(verified.claims);
}
