import {
  allow,
  asUnbounded,
  below,
  type Effect,
  harmless,
  judge,
  judgeEach,
  judgeObject,
  type Rule,
  unknownEffect,
  worse,
} from '../bounds/allow-list.ts';
import { apart, compileGroup } from '../bounds/compile-group.ts';
import { readOutputBound, writeOutputBound } from '../bounds/output-bound.ts';
import { applyConfig } from '../config/apply-config.ts';
import type { CompiledConfig } from '../config/compile-config.ts';
import { type Dialect, MODEL, NAMES, NO_OUTPUT } from '../dialect.ts';
import * as LISTS from '../facts/openai/realtime.ts';
import { isJsonObject, type JsonObject, readObject, textOf } from '../json.ts';
import type { DialectSpend, EventReader, Unbounded } from '../spend.ts';
import { hasText } from '../usage/content.ts';
import { REALTIME_COUNTS } from '../usage/known.ts';
import { unknownCounts } from '../usage/known-counts.ts';
import type { Content, Statement } from '../usage/record.ts';
import { boundText, modelIn } from './chat.ts';
import { boundPrompts } from './input.ts';
import { isErrorOf, type OpenaiRules } from './rules.ts';
import { readRealtimeUsage, realtimeParts } from './usage.ts';

/**
 * A response of a Realtime session (`openai` SDK, resources/realtime). Its body is the `response` of `response.create`, with the model of
 * the session next to it. Its input is the conversation, which is at the API, so it is held as the whole context window.
 */
export const openaiRealtime = (id: string, { errors }: Pick<OpenaiRules, 'errors'>): Dialect => ({
  id,
  settings: [
    MODEL,
    { at: ['max_output_tokens'], names: NAMES.outputBound },
    ...NO_OUTPUT.filter(({ names }) => names !== NAMES.outputBound),
  ],
  addedFields: ['model', 'max_output_tokens'],
  spend: {
    model: modelIn,
    streams: () => true,
    boundBody,
    withOutputBound: (body, tokens) => writeOutputBound(body, 'max_output_tokens', tokens),
    readAnswer: (answer) => (isJsonObject(answer) ? usageOf(answer) : undefined),
    readStream: readRealtimeEvents,
    isOwnError: (answer) => isErrorOf(errors, answer),
  },
});

/** It is not documented that the bound of the output covers reasoning. */
const boundBody: DialectSpend['boundBody'] = (body, { facts }) => {
  const { max_output_tokens: most, ...others } = body;
  const bounded = boundText(most === 'inf' ? others : body, facts, {
    input: () => boundPrompts(worse(judge(BODY, body), 'whole window'), facts, () => 0),
    times: 1,
    omitted: LISTS.REALTIME_OUTPUT.most,
  });
  if ('unbounded' in bounded || !bounded.bound.output) return bounded;
  return {
    bound: { ...bounded.bound, output: { ...bounded.bound.output, coversReasoning: !facts.reasoning } },
  };
};

/** The last event of a response has its usage, and everything that was written. */
function readRealtimeEvents(): EventReader {
  let isOver = false;
  return {
    matters: (event) => event.includes(DONE),
    mayBeWritten: () => false,
    event: (data) => {
      const event = readObject(data);
      if (event?.type !== 'response.done' || !isJsonObject(event.response)) return undefined;
      isOver = true;
      return usageOf(event.response);
    },
    isWhole: () => isOver,
  };
}

const DONE = '"response.done"';

const usageOf = ({ usage, output }: JsonObject): Statement => ({
  usage: readRealtimeUsage(usage) ?? 'unreadable',
  parts: realtimeParts(usage),
  content: contentIn(output),
  unknown: [...unknownCounts(usage, REALTIME_COUNTS), ...costlyItems(output)],
});

const contentIn = (output: unknown): Content | undefined =>
  Array.isArray(output) && output.filter(isJsonObject).some(isWritten) ? 'written' : undefined;

const isWritten = ({ type, content }: JsonObject): boolean => type !== 'message' || hasText(content);

/** Items that no tool of a holder makes. */
const costlyItems = (output: unknown): readonly string[] =>
  Array.isArray(output)
    ? output.filter(isJsonObject).flatMap(({ type }) => (ITEMS.has(textOf(type)) ? [] : textOf(type)))
    : [];

/** Why a holder's response is not begun. It has no model, because its session has one. */
export function refusedResponse(response: JsonObject): Unbounded | undefined {
  const effect = below('response', judge(RESPONSE, response));
  if (typeof effect === 'object') return asUnbounded(effect);
  return 'model' in response
    ? { param: 'response.model', reason: 'the model is that of the session' }
    : undefined;
}

/** The fields of a planned body that a response has. */
export function responseFields({ audio, ...body }: JsonObject): JsonObject {
  const sent = Object.entries(body).filter(([field]) => field !== 'model' && RESPONSE.has(field));
  const { output } = isJsonObject(audio) ? audio : ({} as JsonObject);
  return { ...Object.fromEntries(sent), ...(output !== undefined && { audio: { output } }) };
}

/** A session to set, and whether its holder wants a response after each speech. Undefined: unchanged. */
export type GovernedSession = { readonly session: JsonObject; readonly answers: boolean | undefined };

/**
 * A session in which the API begins no response by itself, and does no work that is billed apart from responses. Every field that is not
 * known is refused.
 */
export function governSession(session: JsonObject): GovernedSession | { readonly unbounded: Unbounded } {
  const effect = below('session', judge(SESSION, session));
  if (typeof effect === 'object') return { unbounded: asUnbounded(effect) };
  const vague = vaguePart(session);
  if (vague !== undefined)
    return { unbounded: { param: vague, reason: 'is null, so how sound is heard is not known' } };
  const { audio } = session;
  if (!isJsonObject(audio) || !isJsonObject(audio.input)) return { session, answers: undefined };
  const { input } = audio;
  const { turn_detection: detection } = input;
  const governed = {
    ...input,
    ...('transcription' in input && { transcription: null }),
    ...(isJsonObject(detection) && { turn_detection: silenced(detection) }),
  };
  const answers = isJsonObject(detection)
    ? detection.create_response !== false
    : 'turn_detection' in input
      ? false
      : undefined;
  return { session: { ...session, audio: { ...audio, input: governed } }, answers };
}

/** A session that the config of a URL overrides. Its model is in the address of the socket. */
export function configuredSession(
  config: CompiledConfig | undefined,
  path: string,
  session: JsonObject,
): JsonObject {
  const { model: _, ...laid } = config ? applyConfig(config, { path, body: session }).body : session;
  return laid;
}

/** The session that a socket is opened with. Unbounded: no session can have the config of the URL. */
export const openingSession = (
  config: CompiledConfig | undefined,
  path: string,
): ReturnType<typeof governSession> => governSession(configuredSession(config, path, OPENING));

const OPENING: JsonObject = {
  type: 'realtime',
  audio: { input: { transcription: null, turn_detection: { type: 'server_vad' } } },
};

/** The model that a config sets for sessions. Null or undefined: the holder names it. */
export const sessionModel = (config: CompiledConfig | undefined, path: string): unknown =>
  config && applyConfig(config, { path, body: {} }).body.model;

/** Whether a value names a model. */
export const isModelName = (model: unknown): model is string => typeof model === 'string' && model !== '';

/** A part that is null in place of the settings by which the API begins no response. */
function vaguePart({ audio }: JsonObject): string | undefined {
  if (audio === null) return 'session.audio';
  if (!isJsonObject(audio)) return undefined;
  if (audio.input === null) return 'session.audio.input';
  const detection = isJsonObject(audio.input) && audio.input.turn_detection;
  const isVague = isJsonObject(detection) && textOf(detection.type) === '';
  return isVague ? 'session.audio.input.turn_detection.type' : undefined;
}

const silenced = ({ idle_timeout_ms: _, ...detection }: JsonObject): JsonObject => ({
  ...detection,
  create_response: false,
});

/** Whether the API does work by itself in a session as it states it: responses without a request, or transcriptions. */
export function worksByItself({ type, audio }: JsonObject): boolean {
  if (type !== 'realtime') return true;
  const input = isJsonObject(audio) && audio.input;
  if (isJsonObject(input) && (input.transcription ?? null) !== null) return true;
  const detection = isJsonObject(input) && input.turn_detection;
  if (detection === null) return false;
  if (!isJsonObject(detection)) return true;
  return detection.create_response !== false || (detection.idle_timeout_ms ?? null) !== null;
}

/** Why a holder may not add an item to a conversation. */
export function refusedItem(item: unknown): Unbounded | undefined {
  const effect = below('item', isJsonObject(item) ? judgeItem(item) : { unbounded: 'is not an object' });
  return typeof effect === 'object' ? asUnbounded(effect) : undefined;
}

const tools: Rule = (value) =>
  judgeEach(value, (tool) => {
    const rule = TOOLS.get(textOf(tool.type));
    if (rule === undefined) return unknownEffect('is a tool whose cost is not known', 'type');
    return typeof rule === 'function' ? rule(tool.type, tool) : rule;
  });

const FUNCTION = compileGroup(LISTS.REALTIME_FUNCTION);
const TOOLS = compileGroup(LISTS.REALTIME_TOOLS, { functionTool: (_, tool) => judge(FUNCTION, tool) });
const ITEMS = compileGroup(LISTS.REALTIME_ITEMS);
const ITEM = compileGroup(LISTS.REALTIME_ITEM, {
  kind: (kind) => (ITEMS.has(textOf(kind)) ? 'harmless' : { unbounded: 'is no item of a holder' }),
});
/** A kind that is null counts as omitted in a list of fields, and an item needs one. */
const judgeItem = (item: JsonObject): Effect =>
  textOf(item.type) === '' ? { unbounded: 'is no item of a holder', at: 'type' } : judge(ITEM, item);
/** Items that only this response reads, or names of items of the conversation. */
const items: Rule = (value) =>
  worse(
    judgeEach(value, (item) => (item.type === 'item_reference' ? judge(REFERENCE, item) : judgeItem(item))),
    'whole window',
  );
const REFERENCE = harmless('type', 'id');
const RESPONSE = compileGroup(LISTS.REALTIME_RESPONSE, { outputBound: apart(readOutputBound), tools, items });
const BODY = allow(RESPONSE, compileGroup(LISTS.REALTIME_SESSION_ONLY));
const SESSION = compileGroup(LISTS.REALTIME_SESSION, {
  tools,
  audio: judgeObject(
    compileGroup(LISTS.REALTIME_AUDIO, {
      input: judgeObject(
        compileGroup(LISTS.REALTIME_AUDIO_INPUT, {
          turnDetection: judgeObject(compileGroup(LISTS.TURN_DETECTION)),
        }),
      ),
    }),
  ),
});
