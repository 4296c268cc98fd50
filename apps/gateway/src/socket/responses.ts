import type { JsonObject, Refusal } from '@presign/schema';
import { errorBody, errorStatus, isJsonObject, readJson } from '@presign/schema';
import { NameTree } from '../json/names.ts';
import { splice } from '../json/splice.ts';
import { MODEST, readContent, scanBody } from '../llm/body.ts';

/**
 * OpenAI's Responses over a WebSocket. A client sends `response.create`: the body of a POST, and next to it fields that only sockets have.
 * https://developers.openai.com/api/docs/guides/websocket-mode (2026-11-29); `openai` 7.59, resources/responses, ResponsesClientEvent
 * and ResponsesServerEvent
 */

/** A `response.create`. */
export type Create = {
  /** The `stream_id`, or '' without one. At most one turn of a lane runs at a time. */
  readonly lane: string;
  /** The response that it continues. */
  readonly previous: string | undefined;
  /** Its body, as a POST has it. */
  readonly body: Buffer;
  /** The event with the body that a plan has made of it. */
  readonly withBody: (planned: Buffer) => Buffer;
};

const LANE_MAX_CHARS = 255;
/** Fields that only the event has. No other spelling of them passes. */
const NAMES = new NameTree([['type'], ['stream_id'], ['generate']]);

/** Reads an event of a holder. Only `response.create` is served: other events start work that is no turn, or are not known. */
export function readCreate(frame: Buffer): Create | { readonly refusal: Refusal; readonly lane: string } {
  const scan = scanBody(frame, 'must', NAMES, MODEST);
  const read = readContent(frame, 'must', scan);
  if ('refusal' in read) return { refusal: read.refusal, lane: '' };
  const { json = {} } = read.content;
  const { type, stream_id: streamId, generate, ...body } = json;
  const lane = typeof streamId === 'string' ? streamId.slice(0, LANE_MAX_CHARS) : '';
  const refuse = (param: string, problem: string) => ({
    refusal: { code: 'invalid_request', param, message: `${param}: ${problem}.` } as const,
    lane,
  });
  if (type !== 'response.create')
    return refuse('type', 'this socket takes response.create and no other event');
  if (streamId !== undefined && (typeof streamId !== 'string' || streamId === '' || streamId !== lane))
    return refuse('stream_id', `expected a text of 1 to ${LANE_MAX_CHARS} characters`);
  if (generate !== undefined && typeof generate !== 'boolean')
    return refuse('generate', 'expected true or false');
  const envelope = JSON.stringify({ type, stream_id: streamId, generate });
  const previous = typeof body.previous_response_id === 'string' ? body.previous_response_id : undefined;
  const came = 'excess' in scan ? undefined : { raw: frame, json, scan };
  return {
    lane,
    previous,
    body: came ? splice(came, body) : Buffer.from(JSON.stringify(body)),
    withBody: (planned) => joinObjects(Buffer.from(envelope), planned),
  };
}

/** Two JSON objects as one. Neither begins or ends with whitespace, and the first one has members. */
function joinObjects(first: Buffer, second: Buffer): Buffer {
  const rest = second.subarray(1);
  const comma = /^\s*\}$/.test(rest.subarray(0, 8).toString('latin1')) ? '' : ',';
  return Buffer.concat([first.subarray(0, -1), Buffer.from(comma), rest]);
}

/** The error event of a refusal, as the API writes its own (`openai` 7.59, ResponseWsError). */
export function errorEvent(refusal: Refusal, requestId: string, lane: string): string {
  const { code, message, type, param } = errorBody(refusal, requestId).error;
  const error = {
    ...refusal.details,
    code,
    message: `${code}: ${message}`,
    type,
    param,
    request_id: requestId,
  };
  const stream = lane === '' ? {} : { stream_id: lane };
  return JSON.stringify({ type: 'error', status: errorStatus(refusal), error, ...stream });
}

/** An event of the server that decides about a turn. */
export type ServerEvent = {
  readonly lane: string;
  /** `over`: the response ended, with its usage. `error`: the API refused the request, or broke off. */
  readonly is: 'created' | 'over' | 'error';
  /** The response's id. */
  readonly id: string | undefined;
  /** The status of an error, if it states one. */
  readonly status: number | undefined;
  readonly event: JsonObject;
};

const KINDS: Readonly<Record<string, ServerEvent['is']>> = {
  'response.created': 'created',
  'response.completed': 'over',
  'response.incomplete': 'over',
  'response.failed': 'over',
  error: 'error',
};
const MARKS = Object.keys(KINDS).map((type) => Buffer.from(`"${type}"`));

/** Reads an event that decides about a turn. Undefined: any other, which is nearly every one. They need not be parsed. */
export function readServerEvent(frame: Buffer): ServerEvent | undefined {
  if (!MARKS.some((mark) => frame.includes(mark))) return undefined;
  const event = readEvent(frame);
  const is =
    typeof event?.type === 'string' && Object.hasOwn(KINDS, event.type) ? KINDS[event.type] : undefined;
  if (event === undefined || is === undefined) return undefined;
  const { status, response } = event;
  const id = isJsonObject(response) && typeof response.id === 'string' ? response.id : undefined;
  return { lane: laneOf(event), is, id, status: typeof status === 'number' ? status : undefined, event };
}

/** An event as JSON. Undefined: it is no JSON object. */
export function readEvent(frame: Buffer): JsonObject | undefined {
  const read = readJson(frame);
  return read && isJsonObject(read.value) ? read.value : undefined;
}

export const laneOf = ({ stream_id: lane }: JsonObject): string => (typeof lane === 'string' ? lane : '');
