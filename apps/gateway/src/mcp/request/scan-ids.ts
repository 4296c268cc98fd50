import type { IncomingMessage } from 'node:http';
import { parseJson } from '@presign/schema';
import { scanBody } from '../../http/body.ts';
import { type RpcId, rpcId } from '../ids/rpc-id.ts';
import { BATCH_MAX, type Message, type Messages } from './messages.ts';

/**
 * Reads which requests a POST makes, without keeping its body. A URL that is no longer valid answers them by their ids, and
 * nothing else of the body matters.
 * @returns undefined when the body holds no JSON-RPC message
 */
export async function scanIds(incoming: IncomingMessage, maxBytes: number): Promise<Messages | undefined> {
  const scanner = new IdScanner();
  await scanBody(incoming, maxBytes, (chunk) => scanner.push(chunk));
  return scanner.messages;
}

/** A longer id is not answered by its id. */
const ID_MAX_BYTES = 1_024;

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Finds the ids of JSON-RPC messages byte by byte, in constant memory. It does not check that the text is JSON. */
export class IdScanner {
  readonly #found: Message[] = [];
  #depth = 0;
  /** The depth of a message's own members: 1, or 2 in a batch. 0 before the first bracket. */
  #level = 0;
  #inMessage = false;
  #inString = false;
  #escaped = false;
  #isKey = false;
  #key: string | undefined;
  #text: number[] = [];
  #id: RpcId | undefined;
  #hasMethod = false;
  #isResponse = false;

  /** Takes the next bytes. Returns false when nothing more can be found. */
  push(chunk: Buffer): boolean {
    for (const byte of chunk) {
      if (this.#inString) this.#takeInString(byte);
      else this.#take(byte);
    }
    return this.#found.length < BATCH_MAX;
  }

  get messages(): Messages | undefined {
    return this.#found.length === 0 ? undefined : { all: this.#found, isBatch: this.#level === 2 };
  }

  get #isMember(): boolean {
    return this.#inMessage && this.#depth === this.#level;
  }

  #takeInString(byte: number): void {
    this.#note(byte);
    if (this.#escaped) this.#escaped = false;
    else if (byte === BACKSLASH) this.#escaped = true;
    else if (byte === QUOTE) this.#inString = false;
  }

  #take(byte: number): void {
    if (byte === QUOTE) this.#inString = true;
    if (byte === OPEN_LIST || byte === OPEN_OBJECT) this.#enter(byte);
    else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) this.#close();
    else if (!this.#isMember) return;
    else if (byte === COLON) this.#endKey();
    else if (byte === COMMA) this.#endMember();
    else this.#note(byte);
  }

  /** Keeps a byte of a key, or of the value of `id`. */
  #note(byte: number): void {
    if (!this.#isMember || this.#text.length > ID_MAX_BYTES) return;
    if (this.#isKey || this.#key === 'id') this.#text.push(byte);
  }

  #enter(byte: number): void {
    if (this.#level === 0) this.#level = byte === OPEN_OBJECT ? 1 : 2;
    this.#depth++;
    if (byte !== OPEN_OBJECT || this.#depth !== this.#level) return;
    this.#inMessage = true;
    this.#isKey = true;
    this.#text = [];
    this.#id = undefined;
    this.#hasMethod = false;
    this.#isResponse = false;
  }

  #close(): void {
    if (this.#isMember) {
      this.#endMember();
      if (this.#hasMethod) this.#found.push({ id: this.#id, method: 'any', name: undefined });
      else if (this.#isResponse) this.#found.push({ id: undefined, method: undefined, name: undefined });
      this.#inMessage = false;
    }
    this.#depth--;
  }

  #endKey(): void {
    const key = parseJson(this.#takeText());
    this.#isKey = false;
    this.#key = typeof key === 'string' ? key : undefined;
    if (key === 'method') this.#hasMethod = true;
    if (key === 'result' || key === 'error') this.#isResponse = true;
  }

  #endMember(): void {
    if (this.#key === 'id' && !this.#isKey) this.#id = this.#readId() ?? this.#id;
    this.#key = undefined;
    this.#isKey = true;
    this.#text = [];
  }

  /** Any number is repeated as it came, because a refused request needs an answer. */
  #readId(): RpcId | undefined {
    const text = this.#takeText().trim();
    const value = parseJson(text);
    return rpcId(value, () => text) ?? (typeof value === 'number' ? text : undefined);
  }

  #takeText(): string {
    const text = Buffer.from(this.#text).toString('utf8');
    this.#text = [];
    return text;
  }
}
