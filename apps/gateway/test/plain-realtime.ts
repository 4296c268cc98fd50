import type { Running } from '../src/socket/dialects/dialect.ts';

/** Slow and plain readers of Realtime's events, with which the gateway's are compared. */

export const MODEL = 'gpt-realtime';

export type Json = Record<string, unknown>;
export const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Reads JSON letter by letter. Throws if it cannot be parsed, and for a name that comes twice in one object. */
export function readSlowly(text: string): unknown {
  JSON.parse(text);
  let at = 0;
  const space = () => {
    while (/\s/.test(text[at] ?? '')) at++;
  };
  const token = (pattern: RegExp): string => {
    space();
    const found = pattern.exec(text.slice(at))?.[0] ?? '';
    at += found.length;
    space();
    return found;
  };
  const value = (): unknown => {
    if (token(/^\{/)) {
      const entries: [string, unknown][] = [];
      while (!token(/^\}/)) {
        const name = JSON.parse(token(/^"(?:[^"\\]|\\.)*"/)) as string;
        if (entries.some(([known]) => known === name)) throw new Error(`${name} comes twice`);
        token(/^:/);
        entries.push([name, value()]);
        token(/^,/);
      }
      return Object.fromEntries(entries);
    }
    if (!token(/^\[/)) return JSON.parse(token(/^(?:"(?:[^"\\]|\\.)*"|[^\s,\]}]+)/));
    const list: unknown[] = [];
    while (!token(/^\]/)) {
      list.push(value());
      token(/^,/);
    }
    return list;
  };
  return value();
}

/** The plain judge: the events, fields and values that a holder may send (`openai` 7.59, resources/realtime). */
const has = (object: unknown, fields: string): object is Json =>
  isObject(object) && Object.keys(object).every((name) => fields.split(' ').includes(name));
export const isNone = (value: unknown) => value === undefined || value === null;
const isOneOf = (value: unknown, ...values: readonly unknown[]) => isNone(value) || values.includes(value);
const areTools = (tools: unknown) =>
  isNone(tools) ||
  (Array.isArray(tools) &&
    tools.every((tool) => has(tool, 'type name description parameters') && tool.type === 'function'));
const isItem = (item: unknown) =>
  has(item, 'type id object status role phase content call_id name arguments output') &&
  ['message', 'function_call', 'function_call_output'].includes(String(item.type));
const isInput = (each: unknown) => isItem(each) || (has(each, 'type id') && each.type === 'item_reference');
const BOTH =
  'instructions audio max_output_tokens output_modalities parallel_tool_calls reasoning tool_choice tools prompt';

const isDetection = (value: unknown) =>
  isNone(value) ||
  (has(
    value,
    'type create_response eagerness idle_timeout_ms interrupt_response prefix_padding_ms silence_duration_ms threshold',
  ) &&
    ['server_vad', 'semantic_vad'].includes(value.type as string));
const isHearing = (input: unknown) =>
  input === undefined ||
  (has(input, 'format noise_reduction transcription turn_detection') && isDetection(input.turn_detection));
const isSession = (session: unknown) =>
  has(session, `${BOTH} type model include tracing truncation turn_detection`) &&
  [undefined, MODEL].includes(session.model as string) &&
  isOneOf(session.type, 'realtime') &&
  isNone(session.prompt) &&
  isNone(session.turn_detection) &&
  areTools(session.tools) &&
  (session.audio === undefined || (has(session.audio, 'input output') && isHearing(session.audio.input)));
const isResponse = (response: unknown) =>
  has(response, `${BOTH} input conversation metadata`) &&
  isNone(response.prompt) &&
  areTools(response.tools) &&
  isOneOf(response.conversation, 'auto', 'none') &&
  (isNone(response.input) || (Array.isArray(response.input) && response.input.every(isInput))) &&
  !(isObject(response.metadata) && Object.keys(response.metadata).length > 15);

export const isText = (value: unknown) => typeof value === 'string';
const isNumber = (value: unknown) => typeof value === 'number';
const maybeText = (value: unknown) => isNone(value) || isText(value);
export const EVENTS: Readonly<Record<string, Readonly<Record<string, (value: unknown) => boolean>>>> = {
  'input_audio_buffer.append': { audio: isText },
  'input_audio_buffer.commit': {},
  'input_audio_buffer.clear': {},
  'conversation.item.create': { previous_item_id: maybeText, item: isItem },
  'conversation.item.delete': { item_id: isText },
  'conversation.item.retrieve': { item_id: isText },
  'conversation.item.truncate': { item_id: isText, content_index: isNumber, audio_end_ms: isNumber },
  'response.cancel': { response_id: maybeText },
  'session.update': { session: isSession },
  'response.create': { response: (value) => value === undefined || isResponse(value) },
};

/** The event, if the plain judge lets it pass. */
export function allowed(text: string): Json | undefined {
  let event: unknown;
  try {
    event = readSlowly(text);
  } catch {
    return undefined;
  }
  if (!isObject(event) || !Object.hasOwn(EVENTS, String(event.type)) || !isText(event.type)) return undefined;
  const fields = EVENTS[event.type as string] ?? {};
  if (!has(event, ['type', 'event_id', ...Object.keys(fields)].join(' '))) return undefined;
  const isAllowed =
    maybeText(event.event_id) && Object.entries(fields).every(([name, is]) => is(event[name]));
  return isAllowed ? event : undefined;
}

/** The plain judge of a provider's events, with what it keeps between them. */
export class PlainEar {
  #speech: unknown;
  #isReady = false;

  hear(text: string, running: readonly Running[]): { is: string; turn?: Running | undefined } {
    let event: unknown;
    try {
      event = JSON.parse(text);
    } catch {}
    const { type, session, response, error, item_id: item } = isObject(event) ? event : ({} as Json);
    if (type === 'session.created' || type === 'session.updated') return this.#session(type, session);
    if (type === 'input_audio_buffer.speech_stopped') this.#speech = item;
    if (type === 'input_audio_buffer.committed') {
      const isSpoken = item !== undefined && item === this.#speech;
      this.#speech = undefined;
      return { is: isSpoken ? 'due' : 'part' };
    }
    const { id, metadata } = isObject(response) ? response : ({} as Json);
    if (type === 'response.created') {
      const name = isObject(metadata) ? metadata.presign_turn : undefined;
      const turn = running.find(({ requestId }) => requestId === name);
      return turn && turn.responseId === undefined && isText(id)
        ? { is: 'created', turn }
        : { is: 'lawless' };
    }
    if (type === 'response.done') {
      const turn = running.find(({ responseId }) => responseId !== undefined && responseId === id);
      return turn ? { is: 'over', turn } : { is: 'stray' };
    }
    if (type !== 'error') return { is: 'part' };
    const { type: kind, event_id: about } = isObject(error) ? error : ({} as Json);
    const turn = running.find(({ requestId }) => requestId === about);
    if (!turn) return { is: isText(about) || kind === 'invalid_request_error' ? 'part' : 'unclear' };
    const isRefusal = ['invalid_request_error', 'rate_limit_error'].includes(kind as string);
    return { is: isRefusal && turn.responseId === undefined ? 'refused' : 'failed', turn };
  }

  #session(type: string, session: unknown): { is: string } {
    if (!isObject(session)) return { is: 'part' };
    if (isText(session.model) && session.model !== MODEL) return { is: 'lawless' };
    if (type === 'session.created') return { is: 'part' };
    const input = isObject(session.audio) && isObject(session.audio.input) ? session.audio.input : {};
    const { turn_detection: detection, transcription } = input;
    const isQuiet =
      detection === null ||
      (isObject(detection) && detection.create_response === false && isNone(detection.idle_timeout_ms));
    if (session.type !== 'realtime' || !isNone(transcription) || !isQuiet) return { is: 'lawless' };
    const was = this.#isReady;
    this.#isReady = true;
    return { is: was ? 'part' : 'ready' };
  }
}
