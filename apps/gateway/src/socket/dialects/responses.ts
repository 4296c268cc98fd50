import { SOCKET_FIELDS } from '@presign/providers';
import type { JsonObject, Refusal } from '@presign/schema';
import { errorStatus, isJsonObject, readJson, type Scan, scanJson } from '@presign/schema';
import { NameTree, namesJudge } from '../../json/names.ts';
import { ambiguous } from '../../llm/body.ts';
import type { Asked, Create, Heard, Running, SocketDialect } from './dialect.ts';
import { NO_JSON, NO_OBJECT } from './end.ts';
import { errorOf } from './error.ts';
import { lookFor, MOST, readEvent, textAt } from './event.ts';

/**
 * OpenAI's Responses over a WebSocket. A client sends `response.create`: the body of a POST, plus fields that only sockets have.
 * https://developers.openai.com/api/docs/guides/websocket-mode (2026-11-29); `openai` 7.59, resources/responses, ResponsesClientEvent and
 * ResponsesServerEvent
 */

const LANE = /^[\w.:-]{1,128}$/;
/** Fields that only the event has. Other spellings of them are refused. */
const OWN = SOCKET_FIELDS.names;
const NAMES = new NameTree(OWN.map((name) => [name]));

/**
 * Reads an event of a holder. Only `response.create` is served: other events are unknown, or start work outside of a turn. The bytes of its
 * other members become a body that is judged like that of a `POST`.
 */
function read(frame: Buffer): Asked {
  const scan = scanJson(frame, MOST, namesJudge(NAMES));
  if ('excess' in scan) return { is: 'refused', refusal: MANY_PARTS, label: '' };
  if (scan.ambiguous !== undefined) return { is: 'refused', refusal: ambiguous(scan.ambiguous), label: '' };
  const own = ownFields(frame, scan);
  if ('refusal' in own) return { is: 'refused', refusal: own.refusal, label: '' };
  const { type, stream_id: streamId, generate } = own.fields;
  const lane = typeof streamId === 'string' && LANE.test(streamId) ? streamId : '';
  const refuse = (param: string, problem: string): Asked => ({
    is: 'refused',
    refusal: { code: 'invalid_request', param, message: `${param}: ${problem}.` },
    label: lane,
  });
  if (type !== 'response.create')
    return refuse('type', 'this socket takes response.create and no other event');
  if (streamId !== undefined && lane === '')
    return refuse('stream_id', 'expected 1 to 128 letters, digits, _, -, . and :');
  if (generate !== undefined && typeof generate !== 'boolean')
    return refuse('generate', 'expected true or false');
  const envelope = Buffer.from(JSON.stringify({ type, stream_id: streamId, generate }));
  const body = bodyOf(frame, scan);
  const withBody = (planned: Buffer) => joinObjects(envelope, planned);
  return { is: 'turn', create: { lane, label: lane, body, withBody } };
}

/** The `stream_id` of an event. */
function labelOf(frame: Buffer): string {
  const lane = textAt(frame, 'stream_id') ?? '';
  return LANE.test(lane) ? lane : '';
}

const MANY_PARTS: Refusal = {
  code: 'invalid_json',
  message: `The event is nested deeper than ${MOST.depth}, or has more than ${MOST.parts} parts. Send it as a POST.`,
};

const isOwn = (name: string): name is (typeof OWN)[number] => (OWN as readonly string[]).includes(name);

type OwnFields = Partial<Record<(typeof OWN)[number], unknown>>;

/** The values of the event's own fields. Refuses text that is not an object, and text between members other than commas and braces. */
function ownFields(
  frame: Buffer,
  { members }: Scan,
): { readonly fields: OwnFields } | { readonly refusal: Refusal } {
  if (!isOneObject(frame, members)) return { refusal: readJson(frame) ? NO_OBJECT : NO_JSON };
  const fields: OwnFields = {};
  for (const { name, at, end } of members) {
    if (!isOwn(name)) continue;
    const read = readJson(Buffer.concat([OPEN, frame.subarray(at, end), CLOSE]));
    if (!read) return { refusal: NO_JSON };
    fields[name] = (read.value as OwnFields)[name];
  }
  return { fields };
}

/** Whether a text is one object, provided that its members are JSON. A scan also finds members in a broken text. */
function isOneObject(frame: Buffer, members: Scan['members']): boolean {
  let [from, before] = [0, '{'];
  for (const { at, end } of members) {
    if (withoutSpace(frame, from, at) !== before) return false;
    [from, before] = [end, ','];
  }
  return withoutSpace(frame, from, frame.length) === (members.length === 0 ? '{}' : '}');
}

const withoutSpace = (frame: Buffer, from: number, to: number): string =>
  frame.toString('latin1', from, to).replaceAll(/[ \t\n\r]+/g, '');

/** The body: the members that are not the event's own. */
function bodyOf(frame: Buffer, { members }: Scan): Buffer {
  const pieces = members
    .filter(({ name }) => !isOwn(name))
    .flatMap(({ at, end }) => [COMMA, frame.subarray(at, end)]);
  return Buffer.concat([OPEN, ...pieces.slice(1), CLOSE]);
}

const OPEN = Buffer.from('{');
const COMMA = Buffer.from(',');
const CLOSE = Buffer.from('}');

/** Two JSON objects as one. Neither begins or ends with whitespace, and the first one has members. */
function joinObjects(first: Buffer, second: Buffer): Buffer {
  const rest = second.subarray(1);
  const comma = /^\s*\}$/.test(rest.subarray(0, 8).toString('latin1')) ? '' : ',';
  return Buffer.concat([first.subarray(0, -1), Buffer.from(comma), rest]);
}

/** The error event of a refusal, as the API writes its own (`openai` 7.59, ResponseWsError). */
function errorEvent(refusal: Refusal, requestId: string, lane: string): string {
  const error = errorOf(refusal, requestId);
  const stream = lane === '' ? {} : { stream_id: lane };
  return JSON.stringify({ type: 'error', status: errorStatus(refusal), error, ...stream });
}

/** An event of the server that ends a turn. */
type Deciding = {
  readonly lane: string;
  /** `over`: the response ended, with its usage. `error`: the API refused the request, or broke off. */
  readonly is: 'created' | 'over' | 'error';
  /** The response's id. */
  readonly id: string | undefined;
  /** The status of an error, if it states one. */
  readonly status: number;
  readonly event: JsonObject;
};

const KINDS: Readonly<Record<string, Deciding['is']>> = {
  'response.created': 'created',
  'response.completed': 'over',
  'response.incomplete': 'over',
  'response.failed': 'over',
  error: 'error',
};
const mayDecide = lookFor(Object.keys(KINDS));

/** Reads an event that decides about a turn. Undefined: it decides nothing, like most events, and is not parsed. */
function readDeciding(frame: Buffer): Deciding | undefined {
  if (!mayDecide(frame)) return undefined;
  const event = readEvent(frame);
  const is =
    typeof event?.type === 'string' && Object.hasOwn(KINDS, event.type) ? KINDS[event.type] : undefined;
  if (event === undefined || is === undefined) return undefined;
  const { status, response } = event;
  const id = isJsonObject(response) && typeof response.id === 'string' ? response.id : undefined;
  return { lane: laneOf(event), is, id, status: typeof status === 'number' ? status : 0, event };
}

/**
 * A response that has ended must be the turn's own. Only an error before a response is a refusal. An error without a lane may belong to any
 * running turn. After any other error the bill is unclear.
 */
function hear<T extends Running>(frame: Buffer, running: readonly T[]): Heard<T> {
  const deciding = readDeciding(frame);
  if (!deciding) return { is: 'part', turn: turnOfPart(frame, running) };
  const { is, id, lane, status, event } = deciding;
  const turn = turnOfEvent(deciding, running);
  if (is === 'created') return heardCreated(deciding, turn);
  if (is === 'over')
    return turn && id !== undefined && turn.responseId === id ? { is, turn } : { is: 'stray' };
  // It is about no turn that runs, so none is in doubt.
  if (!turn && lane !== '') return { is: 'part', turn };
  if (!turn || (lane === '' && !turn.isAlone)) return { is: 'unclear' };
  const isRefusal = status >= 400 && status < 600 && turn.responseId === undefined && !turn.hasAnswered;
  return isRefusal ? { is: 'refused', turn, status, event } : { is: 'failed', turn };
}

/** The turn of the event's lane. An error without a lane is about the only turn, if no other one has run at the same time. */
function turnOfEvent<T extends Running>({ is, lane }: Deciding, running: readonly T[]): T | undefined {
  const [only, other] = running;
  if (is === 'error' && lane === '' && only?.isAlone && !other) return only;
  return running.find((each) => each.lane === lane);
}

/** A turn has one response. Any other one costs what nothing holds. */
function heardCreated<T extends Running>({ id, lane, event }: Deciding, turn: T | undefined): Heard<T> {
  if (turn && (turn.responseId === undefined || turn.responseId === id)) return { is: 'created', turn, id };
  const unasked = { id, lane, most: () => mostOf(event) };
  return { is: 'lawless', why: 'a response that no turn began', unasked };
}

/** The most expensive turn of the model that a response states: it reads the whole window of the model, and has no bound. */
function mostOf({ response }: JsonObject): Create | undefined {
  const { model } = isJsonObject(response) ? response : ({} as JsonObject);
  if (typeof model !== 'string') return undefined;
  const body = Buffer.from(JSON.stringify({ model, previous_response_id: 'unknown', input: '' }));
  return { lane: '', label: '', body, withBody: (planned) => planned, isStated: true };
}

/** The turn of any other event, if the event may matter. */
function turnOfPart<T extends Running>(frame: Buffer, running: readonly T[]): T | undefined {
  if (running.length <= 1) return running[0];
  if (!running.some((turn) => turn.matters(frame))) return undefined;
  const event = readEvent(frame);
  return event && running.find(({ lane }) => lane === laneOf(event));
}

const laneOf = ({ stream_id: lane }: JsonObject): string => (typeof lane === 'string' ? lane : '');

const TURN_RUNS: Refusal = {
  code: 'concurrency_limited',
  message: 'A response of this stream is under way. Wait for its end, or use another stream_id.',
};

export const responsesDialect: SocketDialect = { read, labelOf, hear, errorEvent, busy: TURN_RUNS };
