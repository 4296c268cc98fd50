import type { JsonObject, Refusal } from '@presign/schema';

/** The protocol of one socket: what the events of both sides mean for turns. `connection.ts` does the rest for all protocols. */
export type SocketDialect = {
  /** The first event that the upstream gets. The holder's own wait until the upstream has said that it holds (`ready`). */
  readonly opening?: () => Buffer;
  /** Whether an event of the holder surely is one that `read` sends on as it is. It takes one look, because sound comes 50 times a second. */
  readonly isPlain?: (frame: Buffer) => boolean;
  /** A turn that the protocol itself has to begin, if its lane is free. It is returned once. */
  readonly due?: (isRunning: (lane: string) => boolean) => Create | undefined;
  /** Reads an event of the holder. */
  readonly read: (frame: Buffer) => Asked | Promise<Asked>;
  /** Names an event that is refused unread, as `label` of `read` does. It takes one look, and next to no memory. */
  readonly labelOf: (frame: Buffer) => string;
  /** Reads an event of the upstream. */
  readonly hear: <T extends Running>(frame: Buffer, running: readonly T[]) => Heard<T>;
  /** Writes a refusal as the API writes its own errors. `label` is that of the event which is refused. */
  readonly errorEvent: (refusal: Refusal, requestId: string, label: string) => string;
  /** The turn that asks for nothing of its own. Absent: each turn has its model. */
  readonly least?: () => Create;
  /** The refusal of a turn whose lane has one under way. */
  readonly busy: Refusal;
};

/** A holder's event: it begins a turn, or nothing that is billed. */
export type Asked =
  | { readonly is: 'turn'; readonly create: Create }
  | { readonly is: 'free'; readonly frame: Buffer }
  | { readonly is: 'refused'; readonly refusal: Refusal; readonly label: string };

/** A turn to begin. */
export type Create = {
  /** At most one turn of a lane runs at a time. */
  readonly lane: string;
  /** Names its event in errors. '': it has no name. */
  readonly label: string;
  /** The body that it stands for, as a POST has it. It is yet to be parsed. */
  readonly body: Buffer;
  /** Its event with the body that a plan has made of it. */
  readonly withBody: (planned: Buffer, requestId: string) => Buffer;
};

/** A response that no turn under way began, and the turn that it states, if any. */
export type Unasked = { readonly id: unknown; readonly turnId: unknown };

/** A turn under way, as far as a protocol finds the one that an event is about. */
export type Running = {
  readonly lane: string;
  /** Names its event in errors. */
  readonly label: string;
  readonly requestId: string;
  /** The response's id, once the API has stated it. */
  readonly responseId: string | undefined;
  /** No other turn of its socket was under way at any time of it. */
  readonly isAlone: boolean;
  /** Whether an event may state what its usage is read from. */
  readonly matters: (frame: Buffer) => boolean;
};

/**
 * An event of the upstream, as far as turns go.
 * - `part`: nothing about where a turn begins or ends. `turn`: the one that it belongs to, if it may matter.
 * - `created`: the response of a turn began, with its id.
 * - `over`: it ended, with its usage.
 * - `refused`: the API refused a turn before its response began.
 * - `failed`: an error of a turn that leaves it open what is billed.
 * - `unclear`: an error that may be about any turn.
 * - `stray`: the end of a response that is no turn.
 * - `ready`: the session is as the protocol has set it.
 * - `due`: a turn may be due.
 * - `lawless`: the API does what nothing has admitted, so the socket is cut. `unasked`: it began a response, whose most is charged, and that
 *   states which turn it is of, if any.
 * `shown`: what the holder gets in place of the event.
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
