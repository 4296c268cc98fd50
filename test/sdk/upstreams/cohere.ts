import { type PacedUpstream, startPacedUpstream } from './paced.ts';

/** The model's text, in the pieces that a stream sends. */
export const COHERE_PIECES = ['Presigned ', 'URLs ', 'expire.'];

/**
 * Cohere's v2 chat (https://docs.cohere.com/reference/chat, https://docs.cohere.com/docs/streaming), and the streams
 * of v1 (https://docs.cohere.com/reference/chat-stream-v1).
 */
export const startCohereUpstream = (): Promise<PacedUpstream> =>
  startPacedUpstream(({ url, body }) => {
    if (url === '/v1/chat') return { events: V1_LINES, contentType: 'application/stream+json' };
    const { stream } = JSON.parse(body.toString()) as { stream?: boolean };
    return stream ? { events: EVENTS } : { json: ANSWER };
  });

const USAGE = {
  billed_units: { input_tokens: 5, output_tokens: 6 },
  tokens: { input_tokens: 71, output_tokens: 6 },
};

const ANSWER = {
  id: 'recorded',
  message: { role: 'assistant', content: [{ type: 'text', text: COHERE_PIECES.join('') }] },
  finish_reason: 'COMPLETE',
  usage: USAGE,
};

const event = (type: string, fields: object) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;

const content = (fields: object) => ({ index: 0, delta: { message: { content: fields } } });

const START = { role: 'assistant', content: [], tool_plan: '', tool_calls: [], citations: [] };

const EVENTS = [
  event('message-start', { id: 'recorded', delta: { message: START } }),
  event('content-start', content({ type: 'text', text: '' })),
  ...COHERE_PIECES.map((text) => event('content-delta', content({ text }))),
  event('content-end', { index: 0 }),
  event('message-end', { delta: { finish_reason: 'COMPLETE', usage: USAGE } }),
  'data: [DONE]\n\n',
];

const line = (event_type: string, fields: object) =>
  `${JSON.stringify({ is_finished: event_type === 'stream-end', event_type, ...fields })}\n`;

const V1_ANSWER = {
  text: COHERE_PIECES.join(''),
  generation_id: 'recorded',
  finish_reason: 'COMPLETE',
  meta: USAGE,
};

const V1_LINES = [
  line('stream-start', { generation_id: 'recorded' }),
  ...COHERE_PIECES.map((text) => line('text-generation', { text })),
  line('stream-end', { response: V1_ANSWER, finish_reason: 'COMPLETE' }),
];
