import { randomUUID } from 'node:crypto';
import {
  configuredSession,
  type GovernedSession,
  governSession,
  isOneModel,
  openingSession,
  type PricesAt,
  type Provider,
  refusedResponse,
  responseFields,
  type Unbounded,
  worksByItself,
} from '@presign/providers';
import { briefly, isJsonObject, type JsonObject, type Refusal, readJson, scanJson } from '@presign/schema';
import type { CallRules } from '../../grant/call-rules.ts';
import { tooLarge } from '../../http/body.ts';
import { namesJudge } from '../../json/names.ts';
import { ambiguous } from '../../llm/body.ts';
import type { Asked, Create, Heard, Running, SocketDialect } from './dialect.ts';
import { NO_JSON, NO_OBJECT } from './end.ts';
import { errorOf } from './error.ts';
import { lookFor, MOST, newId, readEvent, textAt } from './event.ts';
import { isFreeEvent, isSound, problemOf } from './realtime-events.ts';

/** A session of OpenAI's Realtime. */
export type RealtimeSession = {
  readonly provider: Provider;
  readonly path: string;
  readonly model: string;
  /** Whether the URL's config names the model. */
  readonly isModelFixed: boolean;
  readonly rules: CallRules;
  readonly at: PricesAt;
  readonly maxBodyBytes: number | undefined;
};

/** The `metadata` key that links a response to its turn. */
const TURN = 'presign_turn';
/** The API accepts 16 pairs, and the turn uses one. */
const MOST_PAIRS = 15;

/**
 * OpenAI's Realtime over a WebSocket. The gateway sets the session so that the API starts no response on its own, before a holder's first
 * event passes. After a speech, the gateway starts the response that the holder wants, as a separate turn.
 * https://developers.openai.com/api/docs/guides/realtime-websocket, realtime-vad (2026-11-29); `openai` 7.59, resources/realtime
 */
export class RealtimeDialect implements SocketDialect {
  readonly busy: Refusal = {
    code: 'concurrency_limited',
    message: 'A response of this conversation is under way. Wait for its end, or cancel it.',
  };
  readonly #session: RealtimeSession;
  /** The session to open with. */
  #first: JsonObject | undefined;
  readonly #openingId = newId('presign_');
  #isReady = false;
  /** The bound of the output that the session has. */
  #mostOutput: unknown;
  /** Whether the holder wants a response after each speech, as the API does by default. */
  #answers = true;
  /** The item of the last speech. */
  #speech: unknown;
  #isDue = false;

  private constructor(session: RealtimeSession, { session: first, answers }: GovernedSession) {
    this.#session = session;
    this.#first = first;
    this.#note(first, answers);
  }

  /** Opens a session. Refuses a session whose URL has a config that no session can have. */
  static open(session: RealtimeSession): RealtimeDialect | { readonly refusal: Refusal } {
    const governed = openingSession(session.rules.config, session.path);
    return 'unbounded' in governed
      ? { refusal: refusalOf(governed.unbounded) }
      : new RealtimeDialect(session, governed);
  }

  opening(): Buffer {
    const session = this.#first;
    this.#first = undefined;
    return eventOf('session.update', this.#openingId, { session });
  }

  isPlain(frame: Buffer): boolean {
    return frame.length <= (this.#session.maxBodyBytes ?? frame.length) && isSound(frame);
  }

  /** The `event_id` of an event. */
  labelOf(frame: Buffer): string {
    return (textAt(frame, 'event_id') ?? '').slice(0, LABEL_MAX);
  }

  read(frame: Buffer): Asked {
    const { maxBodyBytes } = this.#session;
    if (maxBodyBytes !== undefined && frame.length > maxBodyBytes)
      return refused(tooLarge({ maxBodyBytes }), '');
    const scan = scanJson(frame, MOST, namesJudge(undefined));
    if ('excess' in scan) return refused(MANY_PARTS, '');
    if (scan.ambiguous !== undefined) return refused(ambiguous(scan.ambiguous), '');
    const read = readJson(frame);
    if (!read) return refused(NO_JSON, '');
    const event = read.value;
    if (!isJsonObject(event)) return refused(NO_OBJECT, '');
    const label = typeof event.event_id === 'string' ? event.event_id.slice(0, LABEL_MAX) : '';
    const problem = problemOf(event);
    if (problem) return refused(refusalOf(problem), label);
    if (event.type === 'session.update') return this.#update(event, label);
    if (isFreeEvent(event.type)) return { is: 'free', frame };
    return this.#create(event.response, label);
  }

  /** Applies the config to a session, and prevents the API from starting responses in it. */
  #update({ session, event_id: eventId }: JsonObject, label: string): Asked {
    if (!isJsonObject(session)) return refused(invalid('session', 'expected an object'), label);
    const { model, rules, path } = this.#session;
    const stray = Object.keys(session).find(
      (field) => field !== 'type' && rules.fields?.has(field) === false,
    );
    if (stray !== undefined) return refused(fieldRefusal(`session.${stray}`, rules), label);
    if (session.model !== undefined && session.model !== model)
      return refused(invalid('session.model', `the model of this socket is ${model}`), label);
    const governed = governSession(configuredSession(rules.config, path, session));
    if ('unbounded' in governed) return refused(refusalOf(governed.unbounded), label);
    this.#note(governed.session, governed.answers);
    return { is: 'free', frame: eventOf('session.update', eventId, { session: governed.session }) };
  }

  #note(session: JsonObject, answers: boolean | undefined): void {
    if ('max_output_tokens' in session) this.#mostOutput = session.max_output_tokens;
    this.#answers = answers ?? this.#answers;
  }

  /** A turn whose body is the response, with the model and the output bound of the session. */
  #create(response: unknown = {}, label = ''): Asked {
    if (!isJsonObject(response)) return refused(invalid('response', 'expected an object'), label);
    const { rules } = this.#session;
    const stray = Object.keys(response).find((field) => rules.fields?.has(field) === false);
    if (stray !== undefined) return refused(fieldRefusal(`response.${stray}`, rules), label);
    const problem = refusedResponse(response);
    if (problem) return refused(refusalOf(problem), label);
    const { metadata } = response;
    if (isJsonObject(metadata) && Object.keys(metadata).length > MOST_PAIRS)
      return refused(invalid('response.metadata', `expected at most ${MOST_PAIRS} pairs`), label);
    return { is: 'turn', create: this.#turn(response, label) };
  }

  #turn(response: JsonObject, label: string): Create {
    const { model, isModelFixed } = this.#session;
    const body = {
      ...(this.#mostOutput !== undefined && { max_output_tokens: this.#mostOutput }),
      ...response,
      // A config writes its model.
      ...(!isModelFixed && { model }),
    };
    return {
      lane: response.conversation === 'none' ? `none ${randomUUID()}` : DEFAULT_LANE,
      label,
      body: Buffer.from(JSON.stringify(body)),
      withBody: (planned, requestId) => {
        const sent = responseFields(JSON.parse(planned.toString()) as JsonObject);
        const metadata = { ...(isJsonObject(sent.metadata) && sent.metadata), [TURN]: requestId };
        return eventOf('response.create', requestId, { response: { ...sent, metadata } });
      },
    };
  }

  /** The response after a speech, once no other response of the conversation is running. */
  due(isRunning: (lane: string) => boolean): Create | undefined {
    if (!this.#isDue || isRunning(DEFAULT_LANE)) return undefined;
    this.#isDue = false;
    return this.#turn({}, '');
  }

  /** A response without its own settings, with the largest bound, because the session's bound may not be in force yet. */
  least(): Create {
    return this.#turn({ max_output_tokens: 'inf' }, '');
  }

  hear<T extends Running>(frame: Buffer, running: readonly T[]): Heard<T> {
    const event = mayDecide(frame) ? readEvent(frame) : undefined;
    switch (event?.type) {
      case 'session.created':
      case 'session.updated':
        return this.#heardSession(event.type, event.session);
      case 'input_audio_buffer.speech_stopped':
        this.#speech = event.item_id;
        return NOTHING;
      case 'input_audio_buffer.committed':
        return this.#heardCommit(event.item_id);
      case 'response.created':
        return heardCreated(event.response, running, () => this.least());
      case 'response.done':
        return heardDone(event.response, running);
      case 'error':
        return this.#heardError(event, frame, running);
      default:
        return NOTHING;
    }
  }

  #heardSession(type: string, session: unknown): Heard<never> {
    const { provider, model, at } = this.#session;
    if (!isJsonObject(session)) return NOTHING;
    if (typeof session.model === 'string' && !isOneModel(provider, [model, session.model], at))
      return { is: 'lawless', why: 'another model' };
    if (type === 'session.created') return NOTHING;
    if (worksByItself(session)) return { is: 'lawless', why: 'responses by itself' };
    if (this.#isReady) return NOTHING;
    this.#isReady = true;
    return { is: 'ready' };
  }

  /** As in the API, no response follows a buffer that the holder commits itself. */
  #heardCommit(itemId: unknown): Heard<never> {
    const isSpoken = itemId !== undefined && itemId === this.#speech;
    this.#speech = undefined;
    if (!isSpoken || !this.#answers) return NOTHING;
    this.#isDue = true;
    return { is: 'due' };
  }

  /**
   * An error names the event that caused it. A holder sees the name of a turn once its response has started. An error of the API that names
   * no event leaves open which turns it ends.
   */
  #heardError<T extends Running>(event: JsonObject, frame: Buffer, running: readonly T[]): Heard<T> {
    const error = isJsonObject(event.error) ? event.error : {};
    if (error.event_id === this.#openingId) return { is: 'lawless', why: 'the session was refused' };
    const turn = running.find(({ requestId }) => requestId === error.event_id);
    const isOfNone = typeof error.event_id !== 'string' && error.type !== 'invalid_request_error';
    if (!turn) return isOfNone ? { is: 'unclear' } : NOTHING;
    const shown = Buffer.from(
      frame.toString().replaceAll(`"${turn.requestId}"`, () => JSON.stringify(turn.label || null)),
    );
    const status = STATUS.get(error.type);
    return status === undefined || turn.responseId !== undefined
      ? { is: 'failed', turn, shown }
      : { is: 'refused', turn, status, event, shown };
  }

  errorEvent(refusal: Refusal, requestId: string, label: string): string {
    return realtimeError(refusal, requestId, label);
  }
}

/** The error event of a refusal, as the API writes its own (`openai` 7.59, RealtimeErrorEvent). */
export function realtimeError(refusal: Refusal, requestId: string, label: string): string {
  const error = { ...errorOf(refusal, requestId), event_id: label || null };
  return JSON.stringify({ type: 'error', event_id: `event_${randomUUID()}`, error });
}

/** Only one response at a time writes to the conversation. */
const DEFAULT_LANE = '';
const LABEL_MAX = 512;
const NOTHING = { is: 'part', turn: undefined } as const;

const mayDecide = lookFor([
  ...['session.created', 'session.updated', 'response.created', 'response.done', 'error'],
  ...['input_audio_buffer.speech_stopped', 'input_audio_buffer.committed'],
]);

/** The HTTP statuses of errors after which the API certainly starts no response. */
const STATUS: ReadonlyMap<unknown, number> = new Map([
  ['invalid_request_error', 400],
  ['rate_limit_error', 429],
]);

function heardCreated<T extends Running>(
  response: unknown,
  running: readonly T[],
  most: () => Create,
): Heard<T> {
  const { id, metadata } = isJsonObject(response) ? response : ({} as JsonObject);
  const turnId = isJsonObject(metadata) ? metadata[TURN] : undefined;
  const turn = running.find(({ requestId }) => requestId === turnId);
  if (!turn || turn.responseId !== undefined || typeof id !== 'string')
    return { is: 'lawless', why: 'a response that no turn began', unasked: { id, turnId, most } };
  return { is: 'created', turn, id };
}

function heardDone<T extends Running>(response: unknown, running: readonly T[]): Heard<T> {
  const id = isJsonObject(response) ? response.id : undefined;
  const turn = running.find(({ responseId }) => responseId !== undefined && responseId === id);
  return turn ? { is: 'over', turn } : { is: 'stray' };
}

const eventOf = (type: string, eventId: unknown, rest: object): Buffer =>
  Buffer.from(JSON.stringify({ type, event_id: eventId, ...rest }));

const refused = (refusal: Refusal, label: string): Asked => ({ is: 'refused', refusal, label });

const MANY_PARTS: Refusal = {
  code: 'invalid_json',
  message: `The event is nested deeper than ${MOST.depth}, or has more than ${MOST.parts} parts.`,
};

const invalid = (param: string, problem: string): Refusal => ({
  code: 'invalid_request',
  param,
  message: `${param}: ${problem}.`,
});

const refusalOf = ({ param, reason }: Pick<Unbounded, 'param' | 'reason'>): Refusal => invalid(param, reason);

function fieldRefusal(field: string, { fields }: CallRules): Refusal {
  const allowed = fields?.all ?? [];
  const param = briefly(field);
  const message = `This URL allows the fields ${briefly(allowed.join(', ')) || '(none)'}, not ${param}.`;
  return { code: 'field_not_allowed', param, message, details: { allowed } };
}
