import { Agent, request } from 'undici';
import { eventually } from '../harness/eventually.ts';
import type { Stack } from '../harness/stack.ts';
import { at } from './holder.ts';

/** An open stream of events, as a client holds it. */
export type Listener = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** All that has come so far. */
  readonly text: () => string;
  /** The data of all messages so far, parsed. */
  readonly messages: () => unknown[];
  /** Waits until so many messages have come. */
  readonly reached: (count: number) => Promise<unknown[]>;
  /** Waits for the end: `ended` as a stream should, or `broken`. */
  readonly over: Promise<'ended' | 'broken'>;
  readonly leave: () => void;
};

/** GETs a stream on a connection of its own. */
export async function listen(url: string, headers: Record<string, string> = {}): Promise<Listener> {
  const dispatcher = new Agent({ bodyTimeout: 0 });
  const heard = await request(url, { dispatcher, headers: { accept: 'text/event-stream', ...headers } });
  let text = '';
  heard.body.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  const over = new Promise<'ended' | 'broken'>((resolve) => {
    heard.body.on('end', () => resolve('ended'));
    heard.body.on('error', () => resolve('broken'));
  }).finally(() => dispatcher.destroy());
  const messages = () =>
    [...text.matchAll(/^event: message\ndata: (.*)\n\n/gm)].map(
      ([, data]) => JSON.parse(data ?? '') as unknown,
    );
  return {
    ...{ status: heard.statusCode, headers: heard.headers, over, messages },
    text: () => text,
    reached: (count) =>
      eventually(async () => {
        const all = messages();
        return all.length >= count ? all : undefined;
      }),
    leave: () => void heard.body.destroy(),
  };
}

/** A session of the older transport: its stream at the gateway of the URL, its messages to the second one. */
export async function openSession(stack: Stack, url: string) {
  const stream = await listen(url);
  const path = await eventually(async () => /^event: endpoint\ndata: (.*)\n\n/.exec(stream.text())?.[1]);
  return { stream, endpoint: at(stack, 1, new URL(path, url).href) };
}
