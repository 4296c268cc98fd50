import {
  type AllowList,
  allow,
  below,
  type Effect,
  judge,
  judgeEach,
  judgeObject,
  type Rule,
  unknownEffect,
  worse,
} from '../bounds/allow-list.ts';
import { apart, compileGroup } from '../bounds/compile-group.ts';
import { readOutputBound } from '../bounds/output-bound.ts';
import type { Group } from '../facts/fact.ts';
import * as LISTS from '../facts/openai/responses.ts';
import { isJsonObject, isText, isTokens, type JsonObject, objectIn, textOf } from '../json.ts';
import { CACHE_AND_RECORDS, standardTier } from './fields.ts';
import { imagePart, judgeContent, otherTool, ownTools, partOf, TEXT_RULES } from './messages.ts';
import type { InputRules, OpenaiRules } from './rules.ts';

/** Tools that a provider runs under `max_tool_calls`, with the unit of the fee of each. */
export type ServerTools = { readonly rules: AllowList; readonly units: ReadonlyMap<string, string> };

export const NO_SERVER_TOOLS: ServerTools = { rules: new Map(), units: new Map() };

/** The tools of a list. */
export const serverToolsOf = (group: Group<'callsUpTo'>): ServerTools => ({
  rules: compileGroup(group, { callsUpTo: judgeServerTool }),
  units: new Map(
    Object.entries(group.entries).flatMap(([type, entry]) =>
      entry.effect === 'judged' && entry.unit ? [[type, entry.unit]] : [],
    ),
  ),
});

/** Every body field that a call of `/v1/responses` may send. */
export const responsesFields = (
  { input, standardTier: tier }: Pick<OpenaiRules, 'input' | 'standardTier'>,
  serverTools: ServerTools,
): AllowList => {
  const tools = judgeTools(serverTools);
  const own = compileGroup(LISTS.RESPONSES_FIELDS, {
    outputBound: apart(readOutputBound),
    input: judgeInput(input, tools),
    tools,
    callsUpTo: (value) =>
      isCalls(value) ? 'harmless' : { unbounded: `is not a whole number up to ${MOST_CALLS}` },
    reasoning: judgeObject(compileGroup(LISTS.RESPONSE_REASONING)),
    streamOptions: judgeObject(compileGroup(LISTS.RESPONSE_STREAM_OPTIONS)),
    texts,
    standardTier: standardTier(tier),
  });
  return allow(CACHE_AND_RECORDS, own);
};

/** The units of the fees of tools that the provider runs in this call. */
export function serverToolsIn(body: JsonObject, serverTools: ServerTools): readonly string[] {
  const tools = toolsIn(body).filter(isJsonObject);
  const units = tools.flatMap(({ type }) => serverTools.units.get(textOf(type)) ?? []);
  return [...new Set(units)];
}

/** All tools that a body defines: at the top level, and in the input items that define tools. */
export function toolsIn({ tools, input }: JsonObject): readonly unknown[] {
  const items = Array.isArray(input) ? input.filter(isJsonObject) : [];
  const brought = items.filter(({ type }) => TOOL_ITEMS.includes(textOf(type))).map((item) => item.tools);
  return [tools, ...brought].filter(Array.isArray).flat();
}

/** Input items that define tools. */
const TOOL_ITEMS: readonly string[] = Object.entries(LISTS.ITEMS.entries).flatMap(([type, entry]) =>
  entry.effect === 'judged' && entry.by === 'toolItem' ? [type] : [],
);

const texts: Rule = (value) =>
  isJsonObject(value) && Object.values(value).every((each) => typeof each === 'string')
    ? 'harmless'
    : { unbounded: 'is not an object of texts' };

const judgeTools = (serverTools: ServerTools): JudgeTools => {
  const kinds = allow(
    compileGroup(LISTS.RESPONSE_TOOLS, { namespace: judgeNamespace, toolSearch: judgeToolSearch }),
    serverTools.rules,
  );
  return (tools, body) =>
    judgeEach(tools, (tool) => {
      const rule = kinds.get(textOf(tool.type));
      if (rule === undefined) return otherTool(tool.type);
      return typeof rule === 'function' ? rule(tool, body) : rule;
    });
};

type JudgeTools = (tools: unknown, body: JsonObject) => Effect;

function judgeServerTool(_: unknown, { max_tool_calls: calls }: JsonObject): Effect {
  return isCalls(calls)
    ? 'whole window'
    : { unbounded: 'has no maximum of uses without max_tool_calls', at: 'type' };
}

/** More than any call needs, and few enough that the product with a window stays exact. */
const MOST_CALLS = 1_000;

const isCalls = (value: unknown): boolean => isTokens(value) && value <= MOST_CALLS;

const judgeNamespace: Rule = (tool) => below('tools', NAMESPACE_TOOLS(objectIn({ tool }, 'tool').tools));

const NAMESPACE_TOOLS = ownTools(compileGroup(LISTS.NAMESPACE_TOOLS));

/** The caller searches its own tools. Searches of the provider's are turns whose number has no maximum. */
const judgeToolSearch: Rule = (tool) =>
  isJsonObject(tool) && tool.execution === 'client'
    ? 'harmless'
    : { unbounded: 'lets the provider search for tools, which has no maximum', at: 'type' };

/** A text, or messages and items of earlier turns. */
function judgeInput({ imageTokens }: InputRules, tools: JudgeTools): Rule {
  const kindsOf = { known: itemsFor(tools, true), unknown: itemsFor(tools, false) };
  return (input, body) => {
    if (isText(input)) return 'harmless';
    const kinds = imageTokens?.(body.model) === undefined ? kindsOf.unknown : kindsOf.known;
    return judgeEach(input, (item) => {
      const rule = kinds.get(textOf(item.type ?? 'message'));
      if (rule === undefined) return unknownEffect('is an item whose cost is not known', 'type');
      return typeof rule === 'function' ? rule(item, body) : rule;
    });
  };
}

/** The rules for kinds of items. */
function itemsFor(tools: JudgeTools, knowsImages: boolean): AllowList {
  const parts = compileGroup(LISTS.RESPONSE_PARTS, {
    ...TEXT_RULES,
    image: imagePart(INPUT_IMAGE, knowsImages),
    file: fileOf,
  });
  const withContent = (field: string): Rule =>
    judgeObject(allow(ITEM, { [field]: (value: unknown) => judgeContent(parts, value) }));
  return compileGroup(LISTS.ITEMS, {
    content: withContent('content'),
    output: withContent('output'),
    toolItem: (item, body) => judgeToolItem(objectIn({ item }, 'item'), (list) => tools(list, body)),
    toolSearchCall: (item) =>
      isJsonObject(item) && item.execution === 'client' ? judge(SEARCH_CALL, item) : 'whole window',
  });
}

function judgeToolItem(item: JsonObject, judgeList: (tools: unknown) => Effect): Effect {
  const { tools = null } = item;
  return worse(judge(TOOL_ITEM, item), tools === null ? 'harmless' : below('tools', judgeList(tools)));
}

const TOOL_ITEM = compileGroup(LISTS.TOOL_ITEM, { tools: apart(judgeToolItem) });
const ITEM = compileGroup(LISTS.ITEM);
const SEARCH_CALL = compileGroup(LISTS.SEARCH_CALL);
const INPUT_IMAGE = compileGroup(LISTS.INPUT_IMAGE);

/** Text and images of the pages: together at most the whole window. */
const fileOf: Rule = (part) => {
  const effect = filePart(part);
  return typeof effect === 'object' ? effect : 'whole window';
};

const filePart = partOf(compileGroup(LISTS.FILE_PART));
