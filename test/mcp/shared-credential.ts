import type { McpPresignAnswer } from '@presign/schema';
import type { Stack } from '../harness/stack.ts';
import { at, post, type RpcAnswer, urlOf } from './holder.ts';
import { openSession } from './listen.ts';
import { eventOf, type McpUpstream } from './upstream.ts';

/** Holders of URLs of one credential, at a server that hands out what a test says. */
export type World = { readonly stack: Stack; readonly upstream: McpUpstream };

/** How a message reaches its holder: in a POST's own answer, or on the stream of the older transport. */
export const FORMS = ['json', 'sse', 'batch', 'legacy'] as const;
export type Form = (typeof FORMS)[number];

export type Message = { readonly [name: string]: unknown };
export const request = (method: string, params: object, id: unknown = 2) => ({
  ...{ jsonrpc: '2.0', id, method, params },
});
export const notification = (method: string, params: object) => ({ jsonrpc: '2.0', method, params });
export const result = (value: object, id: unknown = 1) => ({ jsonrpc: '2.0', id, result: value });

const AUTH = { auth_type: 'bearer', auth_config: { token: 'the-one-credential-of-all' } };

/** Issues a URL of the credential that all holders share. */
export const issueShared = ({ stack, upstream }: World, form: Form, policy: object = {}) => {
  const url = form === 'legacy' ? upstream.sseUrl : upstream.url;
  const transport = form === 'legacy' ? 'sse' : 'http';
  return stack.issueMcp({ servers: [{ name: 'a', url, transport, ...AUTH }], ...policy });
};

/** The server answers each POST of a request with this message, in the form that is asked for. */
export function handsOut({ upstream }: World, form: Form, message: Message): void {
  upstream.behaves = ({ method, url }, response) => {
    if (method !== 'POST') return false;
    if (url.startsWith('/messages')) {
      response.writeHead(202).end();
      for (const stream of upstream.streams) stream.write(eventOf(message));
      return true;
    }
    const isStream = form === 'sse';
    response.writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json' });
    const last = message.id === 1 ? '' : eventOf(result({}));
    return response.end(
      isStream ? eventOf(message) + last : JSON.stringify(form === 'batch' ? [message] : message),
    );
  };
}

/** A holder: what it hears by sending a message. */
export async function holder({ stack }: World, form: Form, answer: McpPresignAnswer) {
  const url = urlOf(answer, 'a');
  if (form !== 'legacy') {
    const say = async (message: Message, gateway = 0, headers = {}) => {
      const body = form === 'batch' ? [message] : message;
      return post(at(stack, gateway, url), body, headers);
    };
    return { say, leave: () => {} };
  }
  const { stream, endpoint } = await openSession(stack, url);
  const say = async (message: Message, gateway = 0) => {
    const before = stream.messages().length;
    const heard = await post(at(stack, gateway, endpoint), message);
    if (message.method === undefined || message.id === undefined) return heard;
    const all = heard.status === 202 ? await stream.reached(before + 1) : [];
    return { ...heard, messages: all.slice(before).flat() as RpcAnswer[] };
  };
  return { say, leave: stream.leave };
}
