import {
  type ErrorFacts,
  errorFactsIn,
  type Reported,
  type Spend,
  type StreamReader,
  type Usage,
} from '@presign/providers';
import { isModest } from '@presign/schema';
import { type Reservation, SMALL_BODY_BYTES } from '../http/body-memory.ts';
import { createDecoder } from '../http/decoder.ts';
import { type StreamForm, splitterOf, streamForm } from '../http/sse.ts';
import type { Turn } from '../http/turns.ts';
import { Abridger } from './abridge.ts';

/**
 * Reads the usage out of an answer's bytes on their way to the holder. The bytes pass unchanged, except for the usage
 * event if only the gateway asked for it.
 */
export type Meter = {
  /** Takes the next bytes. Returns the bytes that may go to the holder now. */
  readonly pass: (chunk: Buffer) => Buffer | undefined;
  /** Calls back when the bytes that were taken have been decoded. Undefined when nothing is decoded. */
  readonly whenReady: ((ready: () => void) => void) | undefined;
  /** Whether the rest of the answer can still change what the call is charged. */
  readonly isReading: () => boolean;
  /** After the last byte. It is a promise only where the answer is still decoded. */
  readonly end: () => Metered | Promise<Metered>;
};

/** The usage that an answer reported. */
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
export const UNMETERED: Meter = {
  pass: (chunk) => chunk,
  whenReady: undefined,
  isReading: () => false,
  end: () => NOTHING_REPORTED,
};

export type MeterOptions = {
  readonly spend: Spend;
  readonly status: number;
  readonly contentType: string;
  readonly contentEncoding: string;
  /** Only the gateway asked for the usage event, so the holder does not get it. */
  readonly dropsUsageEvent: boolean;
  /** The last event or byte waits for `end`, so that the holder sees the end only after settling. */
  readonly keepsLast: boolean;
  /** Is called once, when a stream has stated its input. Streams that are compressed are not watched. */
  readonly onInput?: ((input: Usage) => void) | undefined;
  /** The memory for what is kept of the answer to read its usage. The caller releases it. */
  readonly memory: Reservation;
  /** When a coded answer is decoded. */
  readonly turn?: Turn | undefined;
};

/** Answers are read up to this many bytes, before and after decoding. */
const WHOLE_MAX_BYTES = 64 * 1024 * 1024;
/** Errors are read up to this many bytes, before and after decoding. A longer one is not known to be free. */
const ERROR_MAX_BYTES = 256 * 1024;
/** The longest event that is waited for. A stream with a longer one passes unread. */
const EVENT_MAX_BYTES = 4 * 1024 * 1024;

/** A shorter piece is kept until the next one, or the end of the answer, comes. */
const SHORT_BYTES = 8 * 1024;

const CR = 13;

/** A meter for an answer of this kind. */
export function createMeter(options: MeterOptions): Meter {
  // An error is read whole to see whose it is, even if its content type is a stream's.
  const form = options.status < 400 ? streamForm(options.contentType) : undefined;
  const isPlain = options.contentEncoding === '' || options.contentEncoding === 'identity';
  return form && isPlain ? eventMeter(options, form) : wholeMeter(options, form);
}

/** Reads a stream event by event. */
function eventMeter(options: MeterOptions, form: StreamForm): Meter {
  const { spend, dropsUsageEvent, keepsLast, memory } = options;
  const splitter = splitterOf(form);
  const reader = patient(spend.readStream?.());
  const hasRoom = roomFor(memory);
  let overlong = false;
  let kept: Buffer | undefined;
  let onInput = reader?.input && options.onInput;
  const announceInput = () => {
    const input = reader?.input?.();
    if (!input) return;
    onInput?.(input);
    onInput = undefined;
  };
  const passEvent = (bytes: Buffer, passed: Buffer[]): void => {
    const event = reader?.matters(bytes) ? readEvent(form, bytes) : undefined;
    if (event) reader?.event(event.data, event.name);
    if (onInput) announceInput();
    if (event && dropsUsageEvent && attempt(() => spend.isUsageEvent?.(event.data))) return;
    // The LF of a CRLF that was cut in two belongs to the event before it.
    if (kept?.at(-1) === CR && bytes.length === 1) {
      kept = Buffer.concat([kept, bytes]);
      return;
    }
    if (kept) passed.push(kept);
    kept = keepsLast && reader?.end() !== undefined ? bytes : undefined;
    if (!kept) passed.push(bytes);
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
      overlong = splitter.waiting > EVENT_MAX_BYTES || !hasRoom(splitter.waiting);
      // If no event is removed or kept back, bytes pass before their event is complete.
      if (!dropsUsageEvent && !keepsLast) {
        look(events, form, reader);
        return chunk;
      }
      const passed: Buffer[] = [];
      for (const event of events) passEvent(event, passed);
      if (overlong) passed.push(...letGo());
      return join(passed);
    },
    whenReady: undefined,
    isReading: () => !overlong && reader?.isLost() === false,
    end: () => {
      const rest = dropsUsageEvent || keepsLast ? join(letGo()) : undefined;
      return { ...NOTHING_REPORTED, rest, reported: overlong ? undefined : reader?.end() };
    },
  };
}

/** Returns whether the memory has room for this many waiting bytes. The most that ever waited stays reserved. */
function roomFor(memory: Reservation): (waiting: number) => boolean {
  let reserved = 0;
  return (waiting) => {
    const more = waiting - reserved;
    if (more <= 0) return true;
    if (!memory.reserve(more)) return false;
    reserved = waiting;
    return true;
  };
}

function look(events: readonly Buffer[], form: StreamForm, reader: PatientReader | undefined): void {
  for (const bytes of events) {
    const event = reader?.matters(bytes) ? readEvent(form, bytes) : undefined;
    if (event) reader?.event(event.data, event.name);
  }
}

/** Reads one event. The JSON of a large one that has very many parts is not parsed: it counts as unreadable. */
const readEvent = (form: StreamForm, bytes: Buffer) =>
  bytes.length > SMALL_BODY_BYTES && !isModest(bytes, MODEST)
    ? { data: '{', name: undefined }
    : form.read(bytes);

/** Reads an answer whose usage only the whole of it shows: one JSON text, or a compressed stream. */
function wholeMeter(options: MeterOptions, form: StreamForm | undefined): Meter {
  const { contentEncoding, keepsLast } = options;
  const reader = form
    ? eventReader(options, form)
    : options.status < 400
      ? answerReader(options)
      : errorReader(options);
  const decoder = createDecoder(
    contentEncoding,
    WHOLE_MAX_BYTES,
    (bytes) => reader.push(bytes),
    options.turn,
  );
  let rest: Buffer | undefined;
  const allButLast = (chunk: Buffer): Buffer | undefined => {
    if (chunk.length === 0) return undefined;
    const passed = join([...(rest ? [rest] : []), chunk.subarray(0, -1)]);
    rest = chunk.subarray(-1);
    return passed;
  };
  return {
    pass: (chunk) => {
      decoder.push(chunk);
      return keepsLast ? allButLast(chunk) : chunk;
    },
    whenReady: decoder.whenReady,
    isReading: decoder.isWhole,
    end: () => {
      const metered = (isWhole: boolean) => ({
        ...NOTHING_REPORTED,
        rest,
        ...(isWhole ? reader.end() : undefined),
      });
      const isWhole = decoder.end();
      return typeof isWhole === 'boolean' ? metered(isWhole) : isWhole.then(metered);
    },
  };
}

/** Reads the decoded bytes of an answer in little memory. */
type Reader = {
  /** Takes the next bytes. Returns false when the rest cannot be read. */
  readonly push: (bytes: Buffer) => boolean;
  readonly end: () => Partial<Metered>;
};

/** Reads a stream that was compressed. */
function eventReader({ spend, memory }: MeterOptions, form: StreamForm): Reader {
  const splitter = splitterOf(form);
  const hasRoom = roomFor(memory);
  const reader = patient(spend.readStream?.());
  return {
    push: (bytes) => {
      look(splitter.push(bytes), form, reader);
      return splitter.waiting <= EVENT_MAX_BYTES && hasRoom(splitter.waiting);
    },
    end: () => ({ reported: reader?.end() }),
  };
}

/** Reads the usage of one JSON text, or of a stream that was sent as one JSON array, whose elements are the events. */
function answerReader({ spend, memory }: MeterOptions): Reader {
  const hasRoom = roomFor(memory);
  // An answer in one short piece, as most are, is read as it is.
  let short: Buffer | undefined;
  let abridger: Abridger | undefined;
  const abridge = (bytes: Buffer): boolean => {
    abridger ??= new Abridger();
    return abridger.push(bytes) && hasRoom(abridger.size);
  };
  return {
    push: (bytes) => {
      if (!abridger && !short && bytes.length <= SHORT_BYTES) {
        short = bytes;
        return hasRoom(bytes.length);
      }
      const before = short;
      short = undefined;
      return (before === undefined || abridge(before)) && abridge(bytes);
    },
    end: () => {
      const answer = parseAnswer(abridger ? abridger.end() : short);
      if (answer === undefined) return {};
      if (!Array.isArray(answer)) return { reported: attempt(() => spend.readAnswer(answer)) };
      const reader = patient(spend.readStream?.());
      for (const element of answer) reader?.event(JSON.stringify(element), undefined);
      return { reported: reader?.end() };
    },
  };
}

/** Reads an error: whose it is, its codes and its message. */
function errorReader({ spend }: MeterOptions): Reader {
  const chunks: Buffer[] = [];
  let size = 0;
  return {
    push: (bytes) => {
      size += bytes.length;
      if (size <= ERROR_MAX_BYTES) chunks.push(bytes);
      return size <= ERROR_MAX_BYTES;
    },
    end: () => {
      const answer = parseAnswer(Buffer.concat(chunks));
      return {
        ownError: attempt(() => spend.isOwnError(answer)) === true,
        error: answer === undefined ? undefined : errorFactsIn(answer),
      };
    },
  };
}

/** Returns undefined when reading throws, because a call must be settled whatever its answer holds. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

type PatientReader = StreamReader &
  Required<Pick<StreamReader, 'matters'>> & { readonly isLost: () => boolean };

/** A reader that reports nothing when it cannot read one of the stream's events. */
function patient(reader: StreamReader | undefined): PatientReader | undefined {
  let lost = false;
  return (
    reader && {
      matters: (event) => !lost && (reader.matters?.(event) ?? true),
      event: (data, name) => {
        const read = !lost && attempt(() => [reader.event(data, name)]);
        lost ||= !read;
      },
      ...(reader.input && { input: () => (lost ? undefined : attempt(() => reader.input?.())) }),
      end: () => (lost ? undefined : attempt(reader.end)),
      isLost: () => lost,
    }
  );
}

const UTF8 = new TextDecoder();

function parseAnswer(bytes: Buffer | undefined): unknown {
  try {
    if (!bytes || !isModest(bytes, MODEST)) return undefined;
    // Removes a byte order mark, as RFC 8259 §8.1 allows.
    return JSON.parse(UTF8.decode(bytes));
  } catch {
    return undefined;
  }
}

/** Parsing a JSON text within these bounds takes at most some 10 ms. */
const MODEST = { depth: 200, parts: 100_000 };

const join = (parts: readonly Buffer[]): Buffer | undefined => {
  if (parts.length <= 1) return parts[0];
  return Buffer.concat(parts);
};
