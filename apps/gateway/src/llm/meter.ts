import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, inflateRaw } from 'node:zlib';
import type { Reported, Spend, StreamReader } from '@presign/providers';
import { EventSplitter, type StreamForm, streamForm } from '../http/sse.ts';

/**
 * Looks at an answer's bytes on their way to the holder and finds out what was used. The bytes pass
 * unchanged, but for the event that is there only because the gateway asked for it.
 */
export type Meter = {
  /** Takes the next bytes; returns what may go to the holder now. */
  readonly pass: (chunk: Buffer) => Buffer | undefined;
  /** After the last byte. */
  readonly end: () => Promise<Metered>;
};

/** What an answer told. */
export type Metered = {
  /** Bytes that are still to go to the holder. */
  readonly rest: Buffer | undefined;
  /** Usage, if the answer told it in full. */
  readonly reported: Reported | undefined;
  /** It is an error that the provider itself made, not an intermediary's. */
  readonly ownError: boolean;
};

const NOTHING_TOLD: Metered = { rest: undefined, reported: undefined, ownError: false };

/** Passes everything, learns nothing. */
export const UNMETERED: Meter = { pass: (chunk) => chunk, end: async () => NOTHING_TOLD };

export type MeterOptions = {
  readonly spend: Spend;
  readonly status: number;
  readonly contentType: string;
  readonly contentEncoding: string;
  /** The usage event was asked for by the gateway alone, so the holder does not get it. */
  readonly dropsUsageEvent: boolean;
  /** The last event, or byte, waits for `end`, so that the holder learns of the end after settling. */
  readonly keepsLast: boolean;
};

/** Answers that are read whole for their usage are kept up to this many bytes, decoded too. */
const WHOLE_MAX_BYTES = 64 * 1024 * 1024;
/** An event is waited for up to this many bytes; a stream with a longer one passes unread. */
const EVENT_MAX_BYTES = 16 * 1024 * 1024;

/** A meter for an answer of this kind. */
export function createMeter(options: MeterOptions): Meter {
  // An error is read for whose it is, whatever it calls itself.
  const form = options.status < 400 ? streamForm(options.contentType) : undefined;
  const isPlain = options.contentEncoding === '' || options.contentEncoding === 'identity';
  return form && isPlain ? eventMeter(options, form) : wholeMeter(options, form);
}

/** A stream's events, read one by one. */
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
      // Where nothing is taken out or kept back, bytes need not wait for their event to be whole.
      if (!dropsUsageEvent && !keepsLast) {
        look(events, form, reader);
        return chunk;
      }
      const passed = events.flatMap(passEvent);
      return join(overlong ? [...passed, ...letGo()] : passed);
    },
    end: async () => {
      const rest = dropsUsageEvent || keepsLast ? join(letGo()) : undefined;
      return { ...NOTHING_TOLD, rest, reported: overlong ? undefined : reader?.end() };
    },
  };
}

function look(events: readonly Buffer[], form: StreamForm, reader: StreamReader | undefined): void {
  for (const bytes of events) {
    const event = form.read(bytes);
    if (event) reader?.event(event.data, event.name);
  }
}

/** An answer whose usage is known only from the whole of it: one JSON text, or a compressed stream. */
function wholeMeter(
  { spend, status, contentEncoding, keepsLast }: MeterOptions,
  form: StreamForm | undefined,
): Meter {
  let chunks: Buffer[] | undefined = [];
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
      if (size > WHOLE_MAX_BYTES) chunks = undefined;
      chunks?.push(chunk);
      return keepsLast ? allButLast(chunk) : chunk;
    },
    end: async () => {
      const untold = { ...NOTHING_TOLD, rest };
      const bytes = chunks && (await decode(Buffer.concat(chunks), contentEncoding));
      if (!bytes) return untold;
      if (status >= 400)
        return { ...untold, ownError: attempt(() => spend.isOwnError(parse(bytes))) === true };
      return { ...untold, reported: attempt(() => readWhole(spend, bytes, form)) };
    },
  };
}

function readWhole(spend: Spend, bytes: Buffer, form: StreamForm | undefined): Reported | undefined {
  const reader = spend.readStream?.();
  if (form) {
    look(new EventSplitter(form).push(bytes), form, reader);
    return reader?.end();
  }
  const answer = parse(bytes);
  if (!Array.isArray(answer)) return answer === undefined ? undefined : spend.readAnswer(answer);
  // A stream as one JSON array: its elements are the events.
  for (const element of answer) reader?.event(JSON.stringify(element), undefined);
  return reader?.end();
}

/** A call must be settled whatever its answer holds: what cannot be read tells nothing. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** A reader that tells nothing of a stream with an event that it cannot read. */
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

function parse(bytes: Buffer): unknown {
  try {
    // Takes off a byte order mark, as RFC 8259 §8.1 lets a parser do.
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
}

/** The content codings that are asked for, because they can be read here. */
export const READABLE_CODINGS: ReadonlySet<string> = new Set(['gzip', 'x-gzip', 'deflate', 'br', 'identity']);

async function decode(bytes: Buffer, encoding: string): Promise<Buffer | undefined> {
  const limit = { maxOutputLength: WHOLE_MAX_BYTES };
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

/** Some send `deflate` without the zlib format around it (RFC 9110 §8.4.1.2), whose first byte names the method, 8. */
const isZlib = (bytes: Buffer): boolean => ((bytes[0] ?? 0) & 0x0f) === 8;

const join = (parts: readonly Buffer[]): Buffer | undefined => {
  if (parts.length <= 1) return parts[0];
  return Buffer.concat(parts);
};
