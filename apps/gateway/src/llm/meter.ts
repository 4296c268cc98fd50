import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate } from 'node:zlib';
import type { Reported, Spend, StreamReader } from '@presign/providers';
import { EventSplitter, readEvent } from './split-events.ts';

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
  /** The stream's last event waits for `end`, so that the holder learns of the end after settling. */
  readonly keepsLast: boolean;
};

/** Answers that are read whole for their usage are kept up to this many bytes, decoded too. */
const WHOLE_MAX_BYTES = 64 * 1024 * 1024;

/** A meter for an answer of this kind. */
export function createMeter(options: MeterOptions): Meter {
  const isEvents = /^text\/event-stream\b/i.test(options.contentType);
  const isPlain = options.contentEncoding === '' || options.contentEncoding === 'identity';
  return isEvents && isPlain ? eventMeter(options) : wholeMeter(options, isEvents);
}

/** Server-sent events, read one by one. */
function eventMeter({ spend, dropsUsageEvent, keepsLast }: MeterOptions): Meter {
  const splitter = new EventSplitter();
  const reader = spend.readStream?.();
  let kept: Buffer | undefined;
  const passEvent = (bytes: Buffer): Buffer[] => {
    const event = readEvent(bytes);
    if (event) reader?.event(event.data, event.name);
    if (event && dropsUsageEvent && spend.isUsageEvent?.(event.data)) return [];
    const before = kept === undefined ? [] : [kept];
    kept = undefined;
    if (!keepsLast || reader?.end() === undefined) return [...before, bytes];
    kept = bytes;
    return before;
  };
  return {
    pass: (chunk) => {
      const events = splitter.push(chunk);
      // Where nothing is taken out or kept back, bytes need not wait for their event to be whole.
      return dropsUsageEvent || keepsLast ? join(events.flatMap(passEvent)) : look(events, reader, chunk);
    },
    end: async () => {
      const cut = splitter.rest();
      const rest = dropsUsageEvent || keepsLast ? join([...(kept ? [kept] : []), cut]) : undefined;
      return { ...NOTHING_TOLD, rest, reported: reader?.end() };
    },
  };
}

function look(events: readonly Buffer[], reader: StreamReader | undefined, chunk: Buffer): Buffer {
  for (const bytes of events) {
    const event = readEvent(bytes);
    if (event) reader?.event(event.data, event.name);
  }
  return chunk;
}

/** An answer whose usage is known only from the whole of it: one JSON text, or a compressed stream. */
function wholeMeter({ spend, status, contentEncoding }: MeterOptions, isEvents: boolean): Meter {
  let chunks: Buffer[] | undefined = [];
  let size = 0;
  return {
    pass: (chunk) => {
      size += chunk.length;
      if (size > WHOLE_MAX_BYTES) chunks = undefined;
      chunks?.push(chunk);
      return chunk;
    },
    end: async () => {
      const bytes = chunks && (await decode(Buffer.concat(chunks), contentEncoding));
      if (!bytes) return NOTHING_TOLD;
      if (status >= 400) return { ...NOTHING_TOLD, ownError: spend.isOwnError(parse(bytes)) };
      return { ...NOTHING_TOLD, reported: readWhole(spend, bytes, isEvents) };
    },
  };
}

function readWhole(spend: Spend, bytes: Buffer, isEvents: boolean): Reported | undefined {
  const reader = spend.readStream?.();
  if (isEvents) {
    look(new EventSplitter().push(bytes), reader, bytes);
    return reader?.end();
  }
  const answer = parse(bytes);
  if (!Array.isArray(answer)) return answer === undefined ? undefined : spend.readAnswer(answer);
  // A stream as one JSON array: its elements are the events.
  for (const element of answer) reader?.event(JSON.stringify(element), undefined);
  return reader?.end();
}

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
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
        return await promisify(inflate)(bytes, limit);
      case 'br':
        return await promisify(brotliDecompress)(bytes, limit);
      default:
        return undefined;
    }
  } catch {
    return undefined;
  }
}

const join = (parts: readonly Buffer[]): Buffer | undefined => {
  if (parts.length <= 1) return parts[0];
  return Buffer.concat(parts);
};
