import type { ServerResponse } from 'node:http';
import type { EncryptionKeys } from '@presign/crypto';
import { type FlatHeaders, headerOf, sendHead, withoutHeaders } from '../../http/headers.ts';
import { NO_SECRETS, type Secrets } from '../../http/hide-secrets.ts';
import type { Admitted } from '../../limits/admit.ts';
import type { Reservation } from '../../share/body-memory.ts';
import type { Turn } from '../../share/turns.ts';
import type { McpCall } from '../request/request.ts';
import type { LegacyStream } from './legacy-sse.ts';
import { type ChargeRefund, callHeaders, type UnrunRequests } from './refund.ts';
import { refusesWhole } from './statuses.ts';

/** The inputs for passing an answer to its holder. */
export type AnswerParts = {
  readonly call: McpCall;
  readonly admitted: Admitted;
  readonly refund: ChargeRefund;
  /** For a GET, which can become a stream of the 2024-11-05 transport. */
  readonly legacy: LegacyStream | undefined;
  /** Called when the server begins an answer that is not a refusal. */
  readonly isTaken: () => void;
  /** The memory for waiting bytes: an incomplete event, or an answer in one piece. */
  readonly answerMemory: Reservation;
  readonly encryptionKeys: EncryptionKeys;
  readonly turn: Turn;
};

/** Where an answer goes: the holder's response, with the head that it will have or has. */
export class Holder {
  readonly response: ServerResponse;
  /** The requests whose charge can still be refunded. Undefined if no charge can. */
  readonly requests: UnrunRequests | undefined;
  /** Secrets that were sent to the server, and that it must not quote. */
  secrets: Secrets = NO_SECRETS;
  status = 0;
  #headers: FlatHeaders = [];
  readonly #parts: AnswerParts;

  constructor(parts: AnswerParts) {
    const { requests } = parts.refund;
    this.#parts = parts;
    this.response = parts.call.outgoing;
    if (requests.all.uses > 0 || parts.call.round) this.requests = requests;
  }

  /** @param headers of the server that may pass */
  takesHead(status: number, headers: FlatHeaders): void {
    this.status = status;
    this.#headers = headers;
  }

  get contentEncoding(): string {
    return headerOf(this.#headers, 'content-encoding') ?? '';
  }

  drop(names: readonly string[]): void {
    this.#headers = withoutHeaders(this.#headers, names);
  }

  add(name: string, value: string): void {
    this.#headers.push(name, value);
  }

  /** Nothing may be written after the end, even if a slow holder still has to read it. */
  get isOver(): boolean {
    return this.response.destroyed || this.response.writableEnded;
  }

  /** @param isStream its head is sent before any of its bytes */
  writeHead(isStream: boolean): void {
    if (this.response.destroyed) return;
    const unrun = refusesWhole(this.status) ? this.requests?.all : this.requests?.unrun;
    const { call, admitted, refund } = this.#parts;
    const own = callHeaders(call, admitted, refund.requests.all, unrun);
    this.response.writeHead(this.status, [...this.#headers, ...own]);
    if (isStream) sendHead(this.response);
  }
}
