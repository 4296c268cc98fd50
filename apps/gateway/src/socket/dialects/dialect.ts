import type { JsonObject, Refusal } from '@presign/schema';

/** The protocol of one socket: what the events of both sides mean for turns. `connection.ts` does the rest for all protocols. */
export type SocketDialect = {
  /** The first event that the upstream gets. The holder's own events wait until the upstream has confirmed it (`ready`). */
  readonly opening?: () => Buffer;
  /**
   * Whether `read` would certainly forward an event of the holder unchanged. It is a quick check, because sound arrives 50 times a second.
   */
  readonly isPlain?: (frame: Buffer) => boolean;
  /** A turn that the protocol itself must start, if its lane is free. It is returned once. */
  readonly due?: (isRunning: (lane: string) => boolean) => Create | undefined;
  /** Reads an event of the holder. */
  readonly read: (frame: Buffer) => Asked | Promise<Asked>;
  /** Returns the label of an event that is refused without parsing, like `label` of `read`. It is quick and takes almost no memory. */
  readonly labelOf: (frame: Buffer) => string;
  /** Reads an event of the upstream. */
  readonly hear: <T extends Running>(frame: Buffer, running: readonly T[]) => Heard<T>;
  /** Writes a refusal as the API writes its own errors. `label` belongs to the refused event. */
  readonly errorEvent: (refusal: Refusal, requestId: string, label: string) => string;
  /** The turn without any settings of its own. Absent: each turn has its own model. */
  readonly least?: () => Create;
  /** The refusal of a turn whose lane already runs one. */
  readonly busy: Refusal;
};

/** A holder's event. It starts a turn, or causes no billed work. */
export type Asked =
  | { readonly is: 'turn'; readonly create: Create }
  | { readonly is: 'free'; readonly frame: Buffer }
  | { readonly is: 'refused'; readonly refusal: Refusal; readonly label: string };

/** A turn to begin. */
export type Create = {
  /** At most one turn of a lane runs at a time. */
  readonly lane: string;
  /** The name of its event in errors. '': it has no name. */
  readonly label: string;
  /** The equivalent body of a POST, not yet parsed. */
  readonly body: Buffer;
  /** Its event with the planned body. */
  readonly withBody: (planned: Buffer, requestId: string) => Buffer;
  /** The provider states its model, so the rules of its URL for bodies neither refuse nor change it. */
  readonly isStated?: true;
};

/** A response that no running turn started. */
export type Unasked = {
  readonly id: unknown;
  /** The request id of the turn that it names, if the protocol has such names. */
  readonly turnId?: unknown;
  /** The lane that it is on, if the protocol states lanes. */
  readonly lane?: string;
  /** The most expensive turn that it may be. Undefined: it is not known. */
  readonly most: () => Create | undefined;
};

/** The fields of a running turn by which a protocol finds the turn of an event. */
export type Running = {
  readonly lane: string;
  /** The name of its event in errors. */
  readonly label: string;
  readonly requestId: string;
  /** The response's id, once the API has stated it. */
  readonly responseId: string | undefined;
  /** An event of its response has come. While several turns run, events without usage do not set it. */
  readonly hasAnswered: boolean;
  /** No other turn of its socket has run at the same time. */
  readonly isAlone: boolean;
  /** Whether an event may contain its usage. */
  readonly matters: (frame: Buffer) => boolean;
};

/**
 * The meaning of an upstream's event for turns.
 * - `part`: it neither starts nor ends a turn. `turn`: the turn that it belongs to, if that matters.
 * - `created`: the response of a turn started, with its id.
 * - `over`: the response ended, with its usage.
 * - `refused`: the API refused a turn before its response started.
 * - `failed`: an error of a turn after which the bill is unclear.
 * - `unclear`: an error that may belong to any turn.
 * - `stray`: the end of a response that is not a turn.
 * - `ready`: the session is set as the protocol requires.
 * - `due`: a turn may be due.
 * - `lawless`: the API started work without admission, so the socket is cut. `unasked`: it started a response, which is charged its
 *   maximum. `shown`: the event that the holder gets instead.
 */
export type Heard<T> =
  | { readonly is: 'part'; readonly turn: T | undefined }
  | { readonly is: 'created'; readonly turn: T; readonly id: string | undefined }
  | { readonly is: 'over'; readonly turn: T }
  | {
      readonly is: 'refused';
      readonly turn: T;
      readonly status: number;
      readonly event: JsonObject;
      readonly shown?: Buffer;
    }
  | { readonly is: 'failed'; readonly turn: T; readonly shown?: Buffer }
  | { readonly is: 'unclear' }
  | { readonly is: 'stray' | 'ready' | 'due' }
  | {
      readonly is: 'lawless';
      readonly why: string;
      readonly unasked?: Unasked;
    };
