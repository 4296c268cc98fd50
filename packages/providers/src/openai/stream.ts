import { isJsonObject, type JsonObject, objectIn, readObject, textOf, valueOfAny } from '../json.ts';
import type { EventReader } from '../spend.ts';
import { COSTLY_FIELDS, contentIn, costlyParts } from '../usage/chat-content.ts';
import { hasText } from '../usage/content.ts';
import type { Content, Statement } from '../usage/record.ts';
import type { OpenaiRules } from './rules.ts';

/** The statement of a chunk or an answer with usage, with what it holds and its parts that may cost money. */
export type ChunkUsage = (
  chunk: JsonObject,
  content: Content | undefined,
  costly: readonly string[],
) => Statement;

/**
 * Reads the chunks of chat completions and completions. If several report usage, the last one counts. A stream with an
 * error, or without its last word, has no usage.
 */
export function readChunks(
  { lastWord, ownField }: Pick<OpenaiRules, 'lastWord' | 'ownField'>,
  usageOf: ChunkUsage,
): EventReader {
  let hasUsage = false;
  let ended = false;
  let broken = false;
  const own = ownField === undefined ? [] : [ownField];
  const last = lastWord === 'finish_reason' ? [lastWord] : [];
  const counts = valueOfAny(['usage', 'error', ...COSTLY_FIELDS, ...last, ...own]);
  return {
    // Two searches of a text take less time than three or four of bytes.
    matters: (event) => {
      const text = event.toString('latin1');
      return counts.test(text) || text.includes(DONE) || !endsObject(event);
    },
    event: (data) => {
      if (data.trim() === '[DONE]') {
        ended = true;
        return undefined;
      }
      const chunk = readObject(data);
      const own = chunk === undefined || ownField === undefined ? {} : objectIn(chunk, ownField);
      if (chunk === undefined || isError(chunk, own)) {
        broken = true;
        return undefined;
      }
      if (lastWord === 'finish_reason' && finishes(chunk)) ended = true;
      const content = contentIn(chunk);
      const parts = costlyParts(chunk);
      if (!reportsUsage(chunk, own)) return { content, unknown: parts };
      // Without [DONE], only usage that comes with or after the finish is known to be complete.
      hasUsage = lastWord === '[DONE]' || ended;
      return usageOf(chunk, content, parts);
    },
    isWhole: () => ended && hasUsage && !broken,
  };
}

/** Reads the events of Responses. The last one contains the whole response with its usage. */
export function readResponseEvents(usageOf: (response: JsonObject) => Statement): EventReader {
  let isOver = false;
  return {
    matters: (event) => LAST_EVENTS.some((type) => event.includes(type)),
    // Events that repeat the whole response are long.
    mayBeWritten: (event) => event.includes(DELTA),
    event: (data, name) => {
      const event = readObject(data);
      const type = textOf(event?.type ?? name);
      if (event === undefined) return undefined;
      if (LAST_EVENTS.includes(type) && isJsonObject(event.response)) {
        isOver = true;
        return usageOf(event.response);
      }
      const isWritten = type.endsWith('.delta') && !type.includes('refusal') && hasText(event.delta);
      return isWritten ? { content: 'written' } : undefined;
    },
    isWhole: () => isOver,
  };
}

const DELTA = '.delta"';
const DONE = '[DONE]';

/** Whether an event may be a whole chunk: a chunk that was cut off is read, so that its stream reports nothing. */
function endsObject(event: Buffer): boolean {
  let end = event.length;
  while (end > 0 && (event[end - 1] ?? 0) <= SPACE) end--;
  return event[end - 1] === CLOSE_OBJECT;
}

const [SPACE, CLOSE_OBJECT] = [0x20, 0x7d];

/** Whether a chunk exists only because the call asked for usage: it has usage and no choices. */
export function isUsageChunk(data: string): boolean {
  if (!data.includes('"usage"')) return false;
  const chunk = readObject(data);
  return (
    chunk !== undefined &&
    Array.isArray(chunk.choices) &&
    chunk.choices.length === 0 &&
    isJsonObject(chunk.usage)
  );
}

const LAST_EVENTS: readonly string[] = ['response.completed', 'response.incomplete', 'response.failed'];

/** An error is an event of its own, or is in the vendor's own field. */
const isError = ({ error }: JsonObject, own: JsonObject): boolean =>
  (error !== undefined && error !== null) || typeof own.error === 'string';

/** Whether a chunk reports usage, well-formed or not. */
const reportsUsage = ({ usage }: JsonObject, own: JsonObject): boolean =>
  (usage !== undefined && usage !== null) || isJsonObject(own.usage);

const finishes = ({ choices }: JsonObject): boolean =>
  Array.isArray(choices) &&
  choices.some((choice) => isJsonObject(choice) && typeof choice.finish_reason === 'string');
