import {
  type ErrorFacts,
  errorFactsIn,
  type Reported,
  type RequestFacts,
  type Spend,
  STATED_TWICE,
  type StreamReader,
  statesTwice,
  type Usage,
} from '@presign/providers';
import { isModest } from '@presign/schema';
import { createDecoder } from '../http/decoder.ts';
import { type StreamForm, streamForm } from '../http/sse.ts';
import { Abridger, isWhitespace } from '../json/abridge.ts';
import type { Reservation } from '../share/body-memory.ts';
import type { Turn } from '../share/turns.ts';
import { HeldBack } from './metering/held-back.ts';
import { attempt, EventReading, MODEST, type Piece, roomFor } from './metering/read-events.ts';

/**
 * Reads the usage out of an answer's bytes on their way to the holder. The bytes pass unchanged, except for the usage
 * event if only the gateway asked for it.
 */
export type Meter = {
  /** Takes the next bytes. Returns the bytes that may go to the holder now. */
  readonly pass: (chunk: Buffer) => Buffer | undefined;
  /** Calls back when the pushed bytes have been decoded. Undefined if nothing is decoded. */
  readonly whenReady: ((ready: () => void) => void) | undefined;
  /** Whether the rest of the answer can still change what the call is charged. */
  readonly isReading: () => boolean;
  /** Called after the last byte. Returns a promise only if the answer is still being decoded. */
  readonly end: () => Metered | Promise<Metered>;
};

/** The usage that an answer reported. */
export type Metered = {
  /** Bytes that remain to be sent to the holder. */
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
  readonly request?: RequestFacts | undefined;
  readonly status: number;
  readonly contentType: string;
  readonly contentEncoding: string;
  /** Only the gateway asked for the usage event, so the holder does not get it. */
  readonly dropsUsageEvent: boolean;
  /** The last event or byte waits for `end`, so that the holder sees the end only after settling. */
  readonly keepsLast: boolean;
  /** The length of the answer, if its head states it. Then only the chunk that reaches this length is delayed. */
  readonly statedBytes?: number | undefined;
  /** Is called once, when a stream has stated its input. Streams that are compressed are not watched. */
  readonly onInput?: ((input: Usage) => void) | undefined;
  /** The memory for the part of the answer that is stored to read its usage. The caller releases it. */
  readonly memory: Reservation;
  /** Waits for a turn to decode a compressed answer. */
  readonly turn?: Turn | undefined;
};

/** Answers are read up to this many bytes, before and after decoding. */
const WHOLE_MAX_BYTES = 64 * 1024 * 1024;
/** Errors are read up to this many bytes, before and after decoding. A longer error does not count as free. */
const ERROR_MAX_BYTES = 256 * 1024;
/** A shorter chunk is kept until the next one or the end of the answer arrives. */
const SHORT_BYTES = 8 * 1024;

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
  const reader = spend.readStream?.(options.request);
  const held = new HeldBack();
  let passed: Buffer[] = [];
  let onInput = reader?.input && options.onInput;
  const announceInput = () => {
    const input = reading.input();
    if (!input) return;
    onInput?.(input);
    onInput = undefined;
  };
  const passPiece = ({ bytes, isPart, event }: Piece): void => {
    if (onInput) announceInput();
    if (event && dropsUsageEvent && attempt(() => spend.isUsageEvent?.(event.data))) return;
    if (isPart && keepsLast) passed.push(...held.hold(bytes.subarray(-1)), bytes.subarray(0, -1));
    else if (held.add(bytes, isVoid)) return;
    else if (keepsLast && reading.reported()) passed.push(...held.hold(bytes));
    else passed.push(...held.hold(), bytes);
  };
  const isVoid = (bytes: Buffer) => form.read(bytes) === undefined;
  const reading = new EventReading(form, reader, memory, passPiece);
  const flush = (): Buffer | undefined => {
    const flushed = join(passed);
    passed = [];
    return flushed;
  };
  return {
    pass: (chunk) => {
      reading.push(chunk);
      const flushed = flush();
      // If no event is removed or delayed, bytes pass before their event is complete.
      return dropsUsageEvent || keepsLast ? flushed : chunk;
    },
    whenReady: undefined,
    isReading: () => reading.isReading,
    end: () => {
      reading.end();
      passed.push(...held.hold());
      const rest = flush();
      return {
        ...NOTHING_REPORTED,
        rest: dropsUsageEvent || keepsLast ? rest : undefined,
        reported: reading.reported(),
      };
    },
  };
}

/** Reads an answer that must be complete before its usage can be read: one JSON text, or a compressed stream. */
function wholeMeter(options: MeterOptions, form: StreamForm | undefined): Meter {
  const { contentEncoding, keepsLast, statedBytes = 0 } = options;
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
  let hasBegun = false;
  let came = 0;
  const allButLast = (chunk: Buffer): Buffer | undefined => {
    if (chunk.length === 0) return undefined;
    came += chunk.length;
    // Its end has not arrived.
    if (came < statedBytes) return chunk;
    // Whitespace before a JSON text is not its end.
    hasBegun ||= !isWhitespace(chunk);
    if (!hasBegun) return chunk;
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

/** Reads the decoded bytes of an answer with little memory. */
type Reader = {
  /** Takes the next bytes. Returns false when the rest cannot be read. */
  readonly push: (bytes: Buffer) => boolean;
  readonly end: () => Partial<Metered>;
};

/** Reads a stream that was compressed. */
function eventReader({ spend, request, memory }: MeterOptions, form: StreamForm): Reader {
  const reading = new EventReading(form, spend.readStream?.(request), memory, () => {});
  return {
    push: (bytes) => {
      reading.push(bytes);
      return reading.isReading;
    },
    end: () => {
      reading.end();
      return { reported: reading.reported() };
    },
  };
}

/** Reads the usage of one JSON text, or of a stream that was sent as one JSON array, whose elements are the events. */
function answerReader({ spend, request, memory }: MeterOptions): Reader {
  const hasRoom = roomFor(memory);
  // Most answers are one short chunk and are parsed directly.
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
      const bytes = abridger ? abridger.end() : short;
      const answer = parseAnswer(bytes);
      if (bytes === undefined || answer === undefined) return {};
      if (statesTwice(bytes)) return { reported: STATED_TWICE };
      if (!Array.isArray(answer)) return { reported: attempt(() => spend.readAnswer(answer, request)) };
      return { reported: attempt(() => readElements(spend.readStream?.(request), answer)) };
    },
  };
}

function readElements(reader: StreamReader | undefined, elements: readonly unknown[]): Reported | undefined {
  for (const element of elements) reader?.event(JSON.stringify(element), undefined);
  return reader?.end();
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

function parseAnswer(bytes: Buffer | undefined): unknown {
  try {
    // A short text has few parts and no long name, and is not nested deeply enough to exhaust a stack.
    if (!bytes || (bytes.length > SHORT_BYTES && !isModest(bytes, MODEST))) return undefined;
    // RFC 8259 §8.1 allows to ignore a byte order mark.
    const begin = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
    return JSON.parse(bytes.toString('utf8', begin));
  } catch {
    return undefined;
  }
}

const join = (parts: readonly Buffer[]): Buffer | undefined => {
  if (parts.length <= 1) return parts[0];
  return Buffer.concat(parts);
};
