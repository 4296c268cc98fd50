import type { EncryptionKeys } from '@presign/crypto';
import { isJsonObject } from '@presign/schema';
import { type FlatHeaders, headerOf } from '../../http/headers.ts';
import { hasId, isMessage, readEvent, replaceData } from '../../http/sse.ts';
import { membersOf } from '../../json/parts.ts';
import { EVENT_MAX_BYTES } from '../../share/body-memory.ts';
import type { Turn } from '../../share/turns.ts';
import { idAnsweredBy, messagesIn } from '../ids/answered-id.ts';
import { type Cookie, type Place, readCookies } from '../ids/cookies.ts';
import { sealEventId } from '../ids/event-ids.ts';
import { mayBeMarked, ownId, restoreIds } from '../ids/list-ids.ts';
import { type Edit, findIds, handedOut, startsOf, withEdits } from '../ids/places.ts';
import { sealState } from '../ids/rounds.ts';
import { sealScalar } from '../ids/seal.ts';
import { sealSession } from '../ids/session.ts';
import type { UnansweredRequests } from '../open/unanswered.ts';
import { ANSWER_MAX_BYTES, initializes, parseAnswer } from '../request/messages.ts';
import type { McpCall } from '../request/request.ts';
import type { LegacyStream } from './legacy-sse.ts';
import { type ToolFilter, toolFilterOf } from './tool-list.ts';
import { withHint } from './transport.ts';

/** Rewrites an answer for its holder: tools that the URL does not allow are removed, and the server's ids are sealed. */
export class AnswerFilter {
  /** A JSON answer may have to change, so it is stored until it is complete. */
  readonly mayChange: boolean;
  /** An unreadable answer must not pass, because it lists tools or tasks. */
  readonly mustRead: boolean;
  /** An answer that must be parsed is stored up to this size. */
  readonly mostBytes: number;
  readonly #call: McpCall;
  readonly #keys: EncryptionKeys;
  readonly #turn: Turn;
  readonly #tools: ToolFilter | undefined;
  /** The server knows the session of this holder. */
  #hasSession: boolean;
  /**
   * Without a session, a stream belongs only to this holder if it answers a POST, or continues after an event that the holder has received.
   */
  readonly #isOwn: boolean;
  /** Its requests without an answer, unless it is a stream of its own. */
  readonly #open: UnansweredRequests | undefined;
  #place: Place | undefined;

  constructor(call: McpCall, keys: EncryptionKeys, turn: Turn, stream: LegacyStream | undefined) {
    const { method, messages, session, endpoint, lastEventId, resumes, round } = call;
    const asks = (prefix: string) =>
      messages?.all.some((message) => message.method?.startsWith(prefix)) === true;
    this.#call = call;
    this.#keys = keys;
    this.#turn = turn;
    this.#tools = toolFilterOf(call, stream?.unanswered);
    this.#hasSession = session !== undefined || endpoint !== undefined;
    this.#open = resumes.length > 0 ? stream?.unanswered : method === 'POST' ? call.unanswered : undefined;
    this.#isOwn = method === 'POST' || lastEventId !== undefined;
    this.mayChange = this.#tools !== undefined || asks('tasks/') || round !== undefined;
    this.mustRead = this.#tools !== undefined || asks('tasks/list');
    this.mostBytes = (messages?.all.length ?? 0) > 1 ? EVENT_MAX_BYTES : ANSWER_MAX_BYTES;
  }

  /** @param place the origin of the answer */
  comesFrom(place: Place): void {
    this.#place = place;
  }

  /**
   * The header with the session of the holder. A session id that the server repeats becomes the holder's own text again, even after a
   * change of the sealing key or of cookies, because clients refuse a different id.
   */
  session(status: number, headers: FlatHeaders): FlatHeaders {
    const { session, incoming, grant, messages, endpoint } = this.#call;
    const { 'mcp-session-id': holders } = incoming.headers;
    const id = headerOf(headers, 'mcp-session-id');
    if (id !== undefined && id === session) return ['mcp-session-id', String(holders)];
    const begins = status < 300 && holders === undefined && !endpoint && messages?.all.some(initializes);
    const cookies = begins ? this.cookies(headers) : [];
    if (id === undefined && cookies.length === 0) return [];
    return ['mcp-session-id', sealSession(this.#keys, grant, { id, cookies })];
  }

  /** The cookies that an answer sets. */
  cookies(headers: FlatHeaders): readonly Cookie[] {
    const { endpoint, method, beganMs } = this.#call;
    const set = headers.filter((_, i) => i % 2 === 1 && headers[i - 1]?.toLowerCase() === 'set-cookie');
    if (set.length === 0 || endpoint || !this.#place) return [];
    return readCookies(set, this.#place, beganMs, method === 'GET' ? IN_URL_CHARS : IN_HEADER_CHARS);
  }

  /**
   * An answer in one piece, in the URL's turn if it is large, because that takes milliseconds. Undefined if it must not pass.
   * @param hint to add to an error of the server. Any other answer then does not pass
   */
  async body(bytes: Buffer, hint?: string): Promise<Buffer | undefined> {
    if (hint !== undefined) return withHint(bytes, hint);
    if (bytes.length <= QUICK_BYTES) return this.#body(bytes);
    return new Promise((resolve) =>
      this.#turn.next(() => {
        this.#turn.take(bytes.length);
        resolve(this.#body(bytes));
      }),
    );
  }

  #body(bytes: Buffer): Buffer | undefined {
    const shown = this.#withIds(bytes);
    return shown && this.#tools && mayBeMarked(shown)
      ? Buffer.from(restoreIds(shown.toString('utf8')))
      : shown;
  }

  #withIds(bytes: Buffer): Buffer | undefined {
    const listed = this.#tools ? this.#tools.body(bytes) : bytes;
    if (!listed || !mayHoldIds(listed)) return listed;
    const text = listed.toString('utf8');
    const shown = this.#shown(text) ?? this.#shownInParts(text);
    if (shown === undefined) return this.mustRead ? undefined : listed;
    return shown === text ? listed : Buffer.from(shown);
  }

  /** Events of a stream, up to the first that must not pass. */
  events(all: readonly Buffer[]): Buffer[] {
    const shown: Buffer[] = [];
    const listed = this.#tools ? this.#tools.events(all) : all;
    let open = this.#open?.ids ?? [];
    for (const [i, each] of listed.entries()) {
      const isEarly = listed.length - i > IDS_AT_ONCE;
      if (open.length > 0 && hasId(each)) {
        const answered = idAnsweredBy(each);
        open = open.filter((id) => id !== (answered && ownId(answered)));
      }
      const event = this.#event(sealEventId(this.#keys, this.#call.grant, each, isEarly, open));
      if (!event) break;
      shown.push(this.#tools && mayBeMarked(event) ? restoreEvent(event) : event);
    }
    return shown;
  }

  #event(bytes: Buffer): Buffer | undefined {
    if (!mayHoldIds(bytes)) return bytes;
    const event = readEvent(bytes);
    // The stream of the older transport is that of a session.
    if (event?.name === 'endpoint') this.#hasSession = true;
    if (event && !isMessage(event)) return bytes;
    const shown = event && (this.#shown(event.data) ?? this.#shownInParts(event.data));
    if (!event || shown === undefined) return this.mustRead ? undefined : bytes;
    if (shown === '') return NOTHING;
    return shown === event.data ? bytes : replaceData(bytes, shown);
  }

  /** The same for a text that is too long to parse at once. Answers to requests that list nothing pass unchanged. */
  #shownInParts(text: string): string | undefined {
    const edits: Edit[] = [];
    let chars = 0;
    for (const { start, end, id } of messagesIn(text)) {
      const message = text.slice(start, end);
      chars += message.length;
      const shown = chars > ANSWER_MAX_BYTES ? undefined : this.#shown(message);
      if (shown === '') return '';
      if (shown !== undefined) edits.push({ start, end, text: shown });
      else if (id !== undefined && this.#tools?.isOther(id)) chars -= message.length;
      else return undefined;
    }
    return withEdits(text, edits);
  }

  /** A message or batch with sealed ids. Empty if it is about the tasks of others. Undefined if it cannot be parsed. */
  #shown(text: string): string | undefined {
    const value = parseAnswer(text);
    if (value === undefined) return undefined;
    const lists = listsOfTasks(text, value);
    if (lists.length > 0) return this.#shown(withEdits(text, lists));
    const ids = findIds(text, value, handedOut);
    if (!this.#hasSession && !this.#isOwn && ids.some(({ kind }) => kind === 'task')) return '';
    const edits = ids.flatMap(({ kind, json, start, end }): Edit[] => {
      const sealed =
        kind === 'state'
          ? sealState(this.#keys, this.#call, json)
          : sealScalar(this.#keys, this.#call.grant, kind, json);
      return sealed === undefined ? [] : [{ start, end, text: sealed }];
    });
    return withEdits(text, edits);
  }
}

function restoreEvent(bytes: Buffer): Buffer {
  const event = readEvent(bytes);
  if (!event || !isMessage(event)) return bytes;
  return replaceData(bytes, restoreIds(event.data));
}

/** Common proxies accept a line of 8 KB, and encryption adds a third. The URL for messages also contains a token and an address. */
const [IN_HEADER_CHARS, IN_URL_CHARS] = [4_096, 2_048];

/** Filtering an answer of this size takes less than a millisecond. */
const QUICK_BYTES = 16 * 1024;
/**
 * Only the last events of a chunk keep their ids, up to this number. Sealing an id takes microseconds, and a chunk may contain thousands of
 * events.
 */
const IDS_AT_ONCE = 100;
const NOTHING = Buffer.alloc(0);

/** Whether the bytes may have a message with an id of the server. Most answers have none, and are not parsed for it. */
const mayHoldIds = (bytes: Buffer): boolean => MARKS.some((mark) => bytes.includes(mark));
const MARKS = ['"method"', '"task', '"requestState"', 'endpoint'].map((mark) => Buffer.from(mark));

/**
 * A server may list the tasks of every holder of its credential: without sessions it must (MCP 2025-11-25, "Task Isolation"). With
 * sessions, servers with the official SDKs did so until 2026 (modelcontextprotocol/typescript-sdk pull 1486, python-sdk pull 2720), or
 * listed the tasks that were begun without a session. The holder could use an id that is sealed for it, so the list is empty.
 */
const EMPTY_LIST = '{"tasks":[]}';

function listsOfTasks(text: string, value: unknown): readonly Edit[] {
  const messages: readonly unknown[] = Array.isArray(value) ? value : [value];
  const listing = messages.flatMap((message, i) => (listsTasks(message) ? [i] : []));
  if (listing.length === 0) return [];
  const starts = startsOf(text, Array.isArray(value));
  return listing
    .flatMap((i) => membersOf(text, starts[i] ?? 0, 'result'))
    .map(({ start, end }) => ({ start, end, text: EMPTY_LIST }));
}

const listsTasks = (message: unknown): boolean =>
  isJsonObject(message) &&
  isJsonObject(message.result) &&
  Array.isArray(message.result.tasks) &&
  (message.result.tasks.length > 0 || message.result.nextCursor !== undefined);
