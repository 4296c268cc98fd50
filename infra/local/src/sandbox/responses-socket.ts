import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { openaiError } from './openai.ts';
import type { SandboxAnswer, SandboxRefusal } from './reply.ts';

/** The part of a WebSocket that a turn needs. */
type Socket = { readonly send: (text: string) => void; readonly readyState: number };

/** Answers one message of a client. */
export type OnMessage = (message: unknown, socket: Socket) => void;

/**
 * The socket of /v1/responses (developers.openai.com/api/docs/guides/websocket-mode, 2026-11-29): each `response.create` begins a turn.
 * The turns of a `stream_id` follow each other, and so do those without one.
 * @param answer the endpoint of a POST
 * @param statusOf the status of a refusal
 */
export function responsesSocket(
  answer: (body: unknown) => SandboxAnswer,
  statusOf: (refusal: SandboxRefusal) => number,
  pauseMs: number,
): OnMessage {
  const lanes = new Map<string, Promise<void>>();
  return (message, socket) => {
    const read = Create.safeParse(jsonOf(message));
    const { stream_id: streamId, ...body } = read.data ?? {};
    const lane = streamId === undefined ? {} : { stream_id: streamId };
    const send = (event: object) =>
      socket.readyState === OPEN && socket.send(JSON.stringify({ ...event, ...lane }));
    const run = async () => {
      const given = read.success ? answer({ ...body, stream: true }) : NO_CREATE;
      if ('refused' in given) send({ type: 'error', status: statusOf(given), ...openaiError(given) });
      if (!('events' in given)) return;
      for (const { data } of given.events) {
        send(data as object);
        await sleep(pauseMs);
      }
    };
    const turn = (lanes.get(streamId ?? '') ?? Promise.resolve()).then(run).then(() => {
      if (lanes.get(streamId ?? '') === turn) lanes.delete(streamId ?? '');
    });
    lanes.set(streamId ?? '', turn);
  };
}

const OPEN = 1;

const Create = z.looseObject({ type: z.literal('response.create'), stream_id: z.string().optional() });

const NO_CREATE: SandboxRefusal = {
  refused: 'invalid',
  message: 'The sandbox takes response.create as JSON, and no other event',
  param: 'type',
};

function jsonOf(message: unknown): unknown {
  if (typeof message !== 'string') return undefined;
  try {
    return JSON.parse(message);
  } catch {
    return undefined;
  }
}
