import { isModest, parseJson, type Refusal } from '@presign/schema';
import { hasManyLines, isMessage, readEvent, replaceData } from '../../http/sse.ts';
import { afterSpace, membersOf, type Part, partsOf } from '../../json/parts.ts';
import { type MessagePart, messagesIn } from '../ids/answered-id.ts';
import { mayBeMarked } from '../ids/list-ids.ts';
import { type Edit, withEdits } from '../ids/places.ts';
import type { RpcId } from '../ids/rpc-id.ts';
import type { UnansweredRequests } from '../open/unanswered.ts';
import { ANSWER_MAX_BYTES, ANSWER_MODEST, listing, wantsAnswer } from '../request/messages.ts';
import type { McpCall } from '../request/request.ts';

/** Removes the tools that a URL does not allow from answers to `tools/list`. */
export class ToolFilter {
  readonly #allowed: ReadonlySet<string>;
  /** Whether the id belongs to an open request that lists nothing. */
  readonly isOther: (id: RpcId) => boolean;

  constructor(allowed: Iterable<string>, isOther: (id: RpcId) => boolean = () => false) {
    this.#allowed = new Set(allowed);
    this.isOther = isOther;
  }

  /** The messages of an answer or a batch, without those that answer a request that lists no tools. */
  #unknown(text: string): readonly MessagePart[] {
    return messagesIn(text).filter(({ id }) => id === undefined || !this.isOther(id));
  }

  /** An answer in one piece. Undefined if it may list tools and cannot be read. */
  body(bytes: Buffer): Buffer | undefined {
    if (!mayList(bytes)) return bytes;
    const text = new TextDecoder().decode(bytes);
    const shown = this.#show(text);
    return shown === text ? bytes : shown === undefined ? undefined : Buffer.from(shown);
  }

  /** Events of a stream, up to the first that may list tools and cannot be read. */
  events(all: readonly Buffer[]): Buffer[] {
    const shown: Buffer[] = [];
    for (const each of all) {
      const bytes = this.#event(each);
      if (!bytes) break;
      shown.push(bytes);
    }
    return shown;
  }

  #event(bytes: Buffer): Buffer | undefined {
    if (!mayList(bytes)) return bytes;
    if (hasManyLines(bytes)) return undefined;
    const event = readEvent(bytes);
    if (!event) return bytes;
    const shown = this.#show(event.data);
    // `endpoint` has an address.
    if (shown === undefined) return isMessage(event) ? undefined : bytes;
    return shown === event.data ? bytes : replaceData(bytes, shown);
  }

  /** Everything except the removed tools is unchanged, because parsing and serializing JSON loses digits of large numbers. */
  #show(text: string): string | undefined {
    const unknown = this.#unknown(text);
    if (!areReadable(unknown.map(({ start, end }) => text.slice(start, end)))) return undefined;
    const edits = unknown
      .flatMap(({ start }) => listsIn(text, start))
      .flatMap(({ name, start, end }): Edit[] => {
        const value = name === 'tools' ? this.#list(text, start) : PRIVATE;
        return value === undefined ? [] : [{ start, end, text: value }];
      });
    return withEdits(text, edits);
  }

  /** The list that begins at `start`, without the tools that are not allowed. Undefined if all its tools are allowed. */
  #list(text: string, start: number): string | undefined {
    const all = partsOf(text, start);
    const kept = all.filter((tool) => this.#isAllowed(text, tool.start));
    if (kept.length === all.length) return undefined;
    return `[${kept.map((tool) => text.slice(tool.start, tool.end)).join()}]`;
  }

  /** If a name is duplicated, both values must be allowed, because parsers differ in which one they use. */
  #isAllowed(text: string, tool: number): boolean {
    const names = membersOf(text, tool, 'name').map(({ start, end }) => text.slice(start, end));
    const isAllowed = (name: string) => name.startsWith('"') && this.#allowed.has(JSON.parse(name) as string);
    return names.length > 0 && names.every(isAllowed);
  }
}

/**
 * The filter of a call's answer. Undefined if all tools are allowed, or none can be listed: only a POST of `tools/list` and a stream with
 * answers to other POSTs can list tools.
 * @param ofStream the requests that a stream answers without being the answer to their POST; list requests have other ids at the server
 */
export function toolFilterOf(
  { server, method, messages }: McpCall,
  ofStream: UnansweredRequests | undefined,
): ToolFilter | undefined {
  const lists = listing(messages);
  if (!server.tools || (method !== 'GET' && lists.length === 0)) return undefined;
  const all = (messages?.all ?? []).filter((each) => wantsAnswer(each) && !lists.includes(each));
  const isOfPost = (id: RpcId) => all.some((each) => each.id === id);
  return new ToolFilter(server.tools, ofStream ? (id) => ofStream.has(id) : isOfPost);
}

/** Sent in place of an answer that cannot be filtered. */
export const LIST_UNREAD: Refusal = {
  code: 'upstream_unreachable',
  message:
    "The MCP server's answer cannot be filtered for the tools that this URL allows: it is not plain JSON, or too large.",
};

/** Whether the bytes may contain a member `tools`, possibly with escapes in its name, or answer a list request. */
const mayList = (bytes: Buffer): boolean =>
  bytes.includes('"tools"') || bytes.includes('\\u00') || mayBeMarked(bytes);

/** Whether these messages are JSON and together small enough to parse on the event loop. */
function areReadable(messages: readonly string[]): boolean {
  if (messages.reduce((sum, each) => sum + each.length, 0) > ANSWER_MAX_BYTES) return false;
  return (
    isModest(Buffer.from(`[${messages.join()}]`), ANSWER_MODEST) &&
    messages.every((each) => parseJson(each) !== undefined)
  );
}

/** Another URL of the server may show other tools, so a cache must not share a list between their holders (2026-07-28, "Caching"). */
const PRIVATE = '"private"';

/** The lists of tools in the message or batch that begins at this index, and the fields that say who may share them, in order. */
function listsIn(text: string, from: number): readonly Part[] {
  const first = afterSpace(text, from);
  const messages = text[first] === '[' ? partsOf(text, first).map(({ start }) => start) : [first];
  return messages
    .flatMap((message) => membersOf(text, message, 'result'))
    .flatMap((result) => {
      const members = text[result.start] === '{' ? partsOf(text, result.start) : [];
      const isList = ({ name, start }: Part) => name === 'tools' && text[start] === '[';
      return members.some(isList)
        ? members.filter((member) => isList(member) || member.name === 'cacheScope')
        : [];
    });
}
