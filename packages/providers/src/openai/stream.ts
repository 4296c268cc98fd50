import { isJsonObject, type JsonObject, objectIn, readObject, textOf, valueOfAny } from '../json.ts';
import type { Reported, StreamReader } from '../spend.ts';
import type { OpenaiRules } from './rules.ts';

/**
 * Reads the chunks of chat completions and completions. If several report usage, the last one counts. A stream with an
 * error, or without its last word, has no usage.
 */
export function readChunks(
  { lastWord, ownField }: Pick<OpenaiRules, 'lastWord' | 'ownField'>,
  usageOf: (chunk: JsonObject) => Reported | undefined,
): StreamReader {
  let usage: Reported | undefined;
  let ended = false;
  let broken = false;
  const own = ownField === undefined ? [] : [ownField];
  const counts = valueOfAny(['usage', 'error', ...(lastWord === 'finish_reason' ? [lastWord] : []), ...own]);
  return {
    // Two searches of a text take less time than three or four of bytes.
    matters: (event) => {
      const text = event.toString('latin1');
      return counts.test(text) || text.includes(DONE) || !endsObject(event);
    },
    event: (data) => {
      if (data.trim() === '[DONE]') {
        ended = true;
        return;
      }
      const chunk = readObject(data);
      const own = chunk === undefined || ownField === undefined ? {} : objectIn(chunk, ownField);
      if (chunk === undefined || isError(chunk, own)) {
        broken = true;
        return;
      }
      if (lastWord === 'finish_reason' && finishes(chunk)) ended = true;
      if (!hasUsage(chunk, own)) return;
      // Without [DONE], only usage that comes with or after the finish is known to be complete.
      usage = lastWord === '[DONE]' || ended ? usageOf(chunk) : undefined;
    },
    end: () => (ended && !broken ? usage : undefined),
  };
}

/** Reads the events of Responses. The last one contains the whole response with its usage. */
export function readResponseEvents(usageOf: (response: JsonObject) => Reported | undefined): StreamReader {
  let usage: Reported | undefined;
  return {
    matters: (event) => LAST_EVENTS.some((type) => event.includes(type)),
    event: (data, name) => {
      const event = readObject(data);
      const type = event?.type ?? name;
      if (event === undefined || !LAST_EVENTS.includes(textOf(type)) || !isJsonObject(event.response)) return;
      usage = usageOf(event.response);
    },
    end: () => usage,
  };
}

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
const hasUsage = ({ usage }: JsonObject, own: JsonObject): boolean =>
  (usage !== undefined && usage !== null) || isJsonObject(own.usage);

const finishes = ({ choices }: JsonObject): boolean =>
  Array.isArray(choices) &&
  choices.some((choice) => isJsonObject(choice) && typeof choice.finish_reason === 'string');
