import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, inflateRaw } from 'node:zlib';
import {
  type ErrorFacts,
  errorFactsIn,
  type Reported,
  type Spend,
  type StreamReader,
} from '@presign/providers';
import { EventSplitter, type StreamForm, streamForm } from '../http/sse.ts';

/**
 * Reads the usage out of an answer's bytes on their way to the holder. The bytes pass unchanged, except for the usage
 * event if only the gateway asked for it.
 */
export type Meter = {
  /** Takes the next bytes. Returns the bytes that may go to the holder now. */
  readonly pass: (chunk: Buffer) => Buffer | undefined;
  /** After the last byte. */
  readonly end: () => Promise<Metered>;
};

/** What an answer reported. */
export type Metered = {
  /** Bytes that are still to go to the holder. */
  readonly rest: Buffer | undefined;
  /** The usage, if the answer reported it in full. */
  readonly reported: Reported | undefined;
  /** The answer is an error of the provider itself and not of an intermediary. */
  readonly ownError: boolean;
  /** The codes and the message of an error whose body could be read. */
  readonly error: ErrorFacts | undefined;
};

const NOTHING_REPORTED: Metered = { rest: undefined, reported: undefined, ownError: false, error: undefined };

/** Passes everything and reads nothing. */
export const UNMETERED: Meter = { pass: (chunk) => chunk, end: async () => NOTHING_REPORTED };

export type MeterOptions = {
  readonly spend: Spend;
  readonly status: number;
  readonly contentType: string;
  readonly contentEncoding: string;
  /** Only the gateway asked for the usage event, so the holder does not get it. */
  readonly dropsUsageEvent: boolean;
  /** The last event or byte waits for `end`, so that the holder sees the end only after settling. */
  readonly keepsLast: boolean;
};

/** Answers that are read whole are kept up to this many bytes, before and after decoding. */
const WHOLE_MAX_BYTES = 64 * 1024 * 1024;
/** Errors are read up to this many bytes, before and after decoding. A longer one is not known to be free. */
const ERROR_MAX_BYTES = 256 * 1024;
/** The longest event that is waited for. A stream with a longer one passes unread. */
const EVENT_MAX_BYTES = 16 * 1024 * 1024;

/** A meter for an answer of this kind. */
export function createMeter(options: MeterOptions): Meter {
  // An error is read whole to see whose it is, even if its content type is a stream's.
  const form = options.status < 400 ? streamForm(options.contentType) : undefined;
  const isPlain = options.contentEncoding === '' || options.contentEncoding === 'identity';
  return form && isPlain ? eventMeter(options, form) : wholeMeter(options, form);
}

/** Reads a stream event by event. */
function eventMeter({ spend, dropsUsageEvent, keepsLast }: MeterOptions, form: StreamForm): Meter {
  const splitter = new EventSplitter(form);
  const reader = patient(spend.readStream?.());
  let overlong = false;
  let kept: Buffer | undefined;
  const passEvent = (bytes: Buffer): Buffer[] => {
    const event = form.read(bytes);
    if (event) reader?.event(event.data, event.name);
    if (event && dropsUsageEvent && attempt(() => spend.isUsageEvent?.(event.data))) return [];
    // The LF of a CRLF that was cut in two belongs to the event before it.
    if (kept && bytes.length === 1) {
      kept = Buffer.concat([kept, bytes]);
      return [];
    }
    const before = kept === undefined ? [] : [kept];
    kept = undefined;
    if (!keepsLast || reader?.end() === undefined) return [...before, bytes];
    kept = bytes;
    return before;
  };
  const letGo = (): Buffer[] => {
    const waiting = [...(kept ? [kept] : []), splitter.rest()];
    kept = undefined;
    return waiting;
  };
  return {
    pass: (chunk) => {
      if (overlong) return chunk;
      const events = splitter.push(chunk);
      overlong = splitter.waiting > EVENT_MAX_BYTES;
      // If no event is removed or kept back, bytes pass before their event is complete.
      if (!dropsUsageEvent && !keepsLast) {
        look(events, form, reader);
        return chunk;
      }
      const passed = events.flatMap(passEvent);
      return join(overlong ? [...passed, ...letGo()] : passed);
    },
    end: async () => {
      const rest = dropsUsageEvent || keepsLast ? join(letGo()) : undefined;
      return { ...NOTHING_REPORTED, rest, reported: overlong ? undefined : reader?.end() };
    },
  };
}

function look(events: readonly Buffer[], form: StreamForm, reader: StreamReader | undefined): void {
  for (const bytes of events) {
    const event = form.read(bytes);
    if (event) reader?.event(event.data, event.name);
  }
}

/** Reads an answer whose usage only the whole of it shows: one JSON text, or a compressed stream. */
function wholeMeter(
  { spend, status, contentEncoding, keepsLast }: MeterOptions,
  form: StreamForm | undefined,
): Meter {
  let chunks: Buffer[] | undefined = [];
  const maxBytes = status < 400 ? WHOLE_MAX_BYTES : ERROR_MAX_BYTES;
  let size = 0;
  let rest: Buffer | undefined;
  const allButLast = (chunk: Buffer): Buffer | undefined => {
    if (chunk.length === 0) return undefined;
    const passed = join([...(rest ? [rest] : []), chunk.subarray(0, -1)]);
    rest = chunk.subarray(-1);
    return passed;
  };
  return {
    pass: (chunk) => {
      size += chunk.length;
      if (size > maxBytes) chunks = undefined;
      chunks?.push(chunk);
      return keepsLast ? allButLast(chunk) : chunk;
    },
    end: async () => {
      const unread = { ...NOTHING_REPORTED, rest };
      const bytes = chunks && (await decompress(Buffer.concat(chunks), contentEncoding, maxBytes));
      if (!bytes) return unread;
      if (status >= 400) return { ...unread, ...readError(spend, bytes) };
      return { ...unread, reported: attempt(() => readWhole(spend, bytes, form)) };
    },
  };
}

function readError(spend: Spend, bytes: Buffer): Pick<Metered, 'ownError' | 'error'> {
  const answer = parseAnswer(bytes);
  return {
    ownError: attempt(() => spend.isOwnError(answer)) === true,
    error: answer === undefined ? undefined : errorFactsIn(answer),
  };
}

function readWhole(spend: Spend, bytes: Buffer, form: StreamForm | undefined): Reported | undefined {
  const reader = spend.readStream?.();
  if (form) {
    look(new EventSplitter(form).push(bytes), form, reader);
    return reader?.end();
  }
  const answer = parseAnswer(bytes);
  if (!Array.isArray(answer)) return answer === undefined ? undefined : spend.readAnswer(answer);
  // A stream sent as one JSON array: its elements are the events.
  for (const element of answer) reader?.event(JSON.stringify(element), undefined);
  return reader?.end();
}

/** Returns undefined when reading throws, because a call must be settled whatever its answer holds. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** A reader that reports nothing when it cannot read one of the stream's events. */
function patient(reader: StreamReader | undefined): StreamReader | undefined {
  let lost = false;
  return (
    reader && {
      event: (data, name) => {
        const read = !lost && attempt(() => [reader.event(data, name)]);
        lost ||= !read;
      },
      end: () => (lost ? undefined : attempt(reader.end)),
    }
  );
}

function parseAnswer(bytes: Buffer): unknown {
  try {
    // Removes a byte order mark, as RFC 8259 §8.1 allows.
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
}

/** The content codings that the gateway asks for and can decode. */
export const READABLE_CODINGS: ReadonlySet<string> = new Set(['gzip', 'x-gzip', 'deflate', 'br', 'identity']);

async function decompress(bytes: Buffer, encoding: string, maxBytes: number): Promise<Buffer | undefined> {
  const limit = { maxOutputLength: maxBytes };
  try {
    switch (encoding.trim().toLowerCase()) {
      case '':
      case 'identity':
        return bytes;
      case 'gzip':
      case 'x-gzip':
        return await promisify(gunzip)(bytes, limit);
      case 'deflate':
        return await promisify(isZlib(bytes) ? inflate : inflateRaw)(bytes, limit);
      case 'br':
        return await promisify(brotliDecompress)(bytes, limit);
      default:
        return undefined;
    }
  } catch {
    return undefined;
  }
}

/** Some servers send `deflate` without the zlib format (RFC 9110 §8.4.1.2). The first byte of that format ends in 8. */
const isZlib = (bytes: Buffer): boolean => ((bytes[0] ?? 0) & 0x0f) === 8;

const join = (parts: readonly Buffer[]): Buffer | undefined => {
  if (parts.length <= 1) return parts[0];
  return Buffer.concat(parts);
};
