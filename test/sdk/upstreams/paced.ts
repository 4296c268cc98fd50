import type { ServerResponse } from 'node:http';
import { type Seen, startUpstream, type Upstream } from '../../harness/upstream.ts';

/** The answer of an upstream: a JSON body, or a stream's events as sent on the wire. */
export type Reply =
  | { readonly status?: number; readonly headers?: Record<string, string>; readonly json: unknown }
  | { readonly events: readonly string[]; readonly contentType?: string };

/** Leave to send: one event at first, one more for each `next()`. */
export type Pace = {
  /** Events that have left so far. */
  readonly sent: () => number;
  readonly next: () => void;
};

export type PacedUpstream = Upstream & {
  /** Has the stream that is asked for next keep this pace. Other streams are sent at once. */
  readonly pace: () => Pace;
  /** Answers the next call with this. */
  readonly replyOnce: (reply: Reply) => void;
};

/** A recording provider, whose streams can be made to wait for whoever reads them. */
export async function startPacedUpstream(
  replyTo: (seen: Seen) => Reply | Promise<Reply>,
): Promise<PacedUpstream> {
  const first: Reply[] = [];
  let steps: Steps | undefined;
  const upstream = await startUpstream(async (seen, response) => {
    const reply = first.shift() ?? (await replyTo(seen));
    if ('events' in reply) {
      const own = steps;
      steps = undefined;
      return sendEvents(response, reply, own);
    }
    const { status = 200, headers, json } = reply;
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify(json));
  });
  return {
    ...upstream,
    pace: () => {
      steps = newSteps();
      return steps;
    },
    replyOnce: (reply) => void first.push(reply),
  };
}

type Steps = Pace & { readonly leave: () => Promise<void> };

function newSteps(): Steps {
  let sent = 0;
  let allowed = 1;
  let wake = () => {};
  return {
    sent: () => sent,
    next: () => {
      allowed += 1;
      wake();
    },
    leave: async () => {
      while (sent >= allowed) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      sent += 1;
    },
  };
}

async function sendEvents(
  response: ServerResponse,
  { events, contentType = 'text/event-stream' }: Extract<Reply, { events: unknown }>,
  steps: Steps | undefined,
) {
  response.writeHead(200, { 'content-type': contentType });
  for (const event of events) {
    // SDKs do not pass pings on, so no test could give leave for the event after one.
    if (!event.startsWith('event: ping')) await steps?.leave();
    response.write(event);
  }
  response.end();
}
