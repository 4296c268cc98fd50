import { isJsonObject } from '@presign/schema';
import type { CustomFetchOptions } from 'oauth4webapi';
import { type Dispatcher, fetch } from 'undici';

/** A token endpoint's answer is a few tokens. */
const ANSWER_MAX_BYTES = 65_536;

/** More than a token endpoint has to say. */
class AnswerTooLargeError extends Error {
  override readonly name = 'AnswerTooLargeError';
}

/**
 * One request of `oauth4webapi` through the guarded dispatcher: redirects are not followed (it asks for none), the
 * answer is read up to a bound. `seen` tells the answer's status, whatever became of the answer.
 */
export function tokenEndpointFetch(dispatcher: Dispatcher) {
  const seen: { status?: number } = {};
  const send = async (
    url: string,
    options: CustomFetchOptions<'POST', URLSearchParams>,
  ): Promise<Response> => {
    const { method, redirect, headers, body, signal } = options;
    const answer = await fetch(url, {
      method,
      redirect,
      headers,
      body: body.toString(),
      signal: signal ?? null,
      dispatcher,
    });
    seen.status = answer.status;
    const text = await readBounded(answer.body);
    // Its challenge goes unread: the library would not read the error in the body then.
    const type = { 'content-type': answer.headers.get('content-type') ?? '' };
    return new Response(text === '' ? null : withoutIdToken(text), { status: answer.status, headers: type });
  };
  return { send, seen };
}

async function readBounded(body: AsyncIterable<Uint8Array> | null): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    size += chunk.length;
    if (size > ANSWER_MAX_BYTES) throw new AnswerTooLargeError();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** An ID token tells a client who logged in, which is of no interest here, and could not be checked. */
function withoutIdToken(text: string): string {
  try {
    const answer: unknown = JSON.parse(text);
    return isJsonObject(answer) ? JSON.stringify({ ...answer, id_token: undefined }) : text;
  } catch {
    return text;
  }
}
