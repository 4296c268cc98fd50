import { parseObject, textOf } from '../bounds/read-count.ts';
import { isJsonObject, type JsonObject } from '../dialect.ts';
import type { Reported, StreamReader } from '../spend.ts';

/** What ends a stream that broke nowhere: OpenAI's closing event, or a chunk that says why it finished. */
type LastWord = '[DONE]' | 'finish_reason';

/**
 * Reads the chunks of chat completions and completions. Of several that report usage the last counts, and
 * none does in a stream that told of an error or stopped before its last word.
 */
export function readChunks(
  lastWord: LastWord,
  usageOf: (chunk: JsonObject) => Reported | undefined,
): StreamReader {
  let usage: Reported | undefined;
  let ended = false;
  let broken = false;
  return {
    event: (data) => {
      if (data.trim() === '[DONE]') {
        ended = true;
        return;
      }
      const chunk = parseObject(data);
      if (chunk === undefined || isError(chunk)) {
        broken = true;
        return;
      }
      if (lastWord === 'finish_reason' && finishes(chunk)) ended = true;
      if (!tellsUsage(chunk)) return;
      // Without a word after it, only what comes with or after the finish is known to be the whole.
      usage = lastWord === '[DONE]' || ended ? usageOf(chunk) : undefined;
    },
    end: () => (ended && !broken ? usage : undefined),
  };
}

/** Reads the events of Responses: the last carries the whole response, and with it the usage. */
export function readResponseEvents(usageOf: (response: JsonObject) => Reported | undefined): StreamReader {
  let usage: Reported | undefined;
  return {
    event: (data, name) => {
      const event = parseObject(data);
      const type = event?.type ?? name;
      if (event === undefined || !LAST_EVENTS.includes(textOf(type)) || !isJsonObject(event.response)) return;
      usage = usageOf(event.response);
    },
    end: () => usage,
  };
}

/** Whether a chunk is the one that comes only because usage was asked for: usage, and no choices. */
export function isUsageChunk(data: string): boolean {
  if (!data.includes('"usage"')) return false;
  const chunk = parseObject(data);
  return (
    chunk !== undefined &&
    Array.isArray(chunk.choices) &&
    chunk.choices.length === 0 &&
    isJsonObject(chunk.usage)
  );
}

const LAST_EVENTS: readonly string[] = ['response.completed', 'response.incomplete', 'response.failed'];

/** Errors come as an event of their own, or in Groq's chunks, beside the rest. */
const isError = ({ error, x_groq }: JsonObject): boolean =>
  (error !== undefined && error !== null) || (isJsonObject(x_groq) && typeof x_groq.error === 'string');

/** Told, if badly: then the usage is not known. */
const tellsUsage = ({ usage, x_groq }: JsonObject): boolean =>
  (usage !== undefined && usage !== null) || (isJsonObject(x_groq) && isJsonObject(x_groq.usage));

const finishes = ({ choices }: JsonObject): boolean =>
  Array.isArray(choices) &&
  choices.some((choice) => isJsonObject(choice) && typeof choice.finish_reason === 'string');
