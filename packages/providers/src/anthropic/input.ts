import { compileWith } from '../bounds/compile-group.ts';
import {
  NOTHING,
  rewrittenShare,
  type Share,
  shareBelow,
  shareOfEach,
  textShare,
  together,
  unboundedShare,
  unknownShare,
  WHOLE_WINDOW,
} from '../bounds/input-share.ts';
import { isCount } from '../bounds/output-bound.ts';
import * as FACTS from '../facts/anthropic.ts';
import type { Entry } from '../facts/fact.ts';
import { isJsonObject, isText, type JsonObject, textOf } from '../json.ts';
import type { Usage } from '../spend.ts';

/** The facts about a call that are needed to judge its blocks. */
export type BlockFacts = {
  /** Whether the model's images have a known maximum. */
  readonly readsImages: boolean;
  /** The most tokens of a tool definition that a reference adds to the prompt again. */
  readonly largestTool: () => number;
};

/** The content of a message or of `system`, block by block (`@anthropic-ai/sdk` 1.14, BetaContentBlockParam). */
export function anthropicContent(content: unknown, facts: BlockFacts): Share {
  if (content === undefined || content === null) return NOTHING;
  if (isText(content)) return textShare(content);
  if (!Array.isArray(content)) return unboundedShare('is neither text nor a list');
  return shareOfEach(content, (block) => blockShare(block, facts));
}

const { most: IMAGE_TOKENS } = FACTS.IMAGE_TOKENS;

type BlockRule = (block: JsonObject, facts: BlockFacts) => Share;

const asText: BlockRule = (block) => textShare(block);
const asWindow: BlockRule = () => WHOLE_WINDOW;
/** The provider replaces the reference by the whole definition. */
const asReference: BlockRule = (block, { largestTool }) =>
  together([textShare(block), { effect: 'harmless', extra: largestTool() }]);

const BLOCKS = compileWith(FACTS.BLOCKS, ({ effect }) => (effect === 'harmless' ? asText : asWindow), {
  reference: asReference,
  toolChange: ({ tool }, facts) => shareBelow('tool', toolChangeShare(tool, facts)),
  rewritten: rewrittenShare,
  result: ({ content }, facts) => shareBelow('content', anthropicContent(content, facts)),
  image: ({ source }, { readsImages }) => shareBelow('source', imageShare(source, readsImages)),
  document: ({ source, ...rest }, facts) =>
    together([textShare(rest), shareBelow('source', documentShare(source, facts))]),
});

function blockShare(block: unknown, facts: BlockFacts): Share {
  if (!isJsonObject(block)) return unboundedShare('is not an object');
  const rule = BLOCKS.get(textOf(block.type));
  return rule === undefined
    ? unknownShare('the cost of this kind of block is not known')
    : rule(block, facts);
}

/** A change of the tools in the midst of a conversation. Only the caller's own tools can be defined here. */
function toolChangeShare(tool: unknown, { largestTool }: BlockFacts): Share {
  const { type, definition } = isJsonObject(tool) ? tool : {};
  if (type === 'tool_reference') return { effect: 'harmless', extra: largestTool() };
  if (type !== 'tool_definition') return unknownShare('the cost of this tool is not known');
  const isOwn = isJsonObject(definition) && (definition.type ?? 'custom') === 'custom';
  return shareBelow(
    'definition',
    isOwn
      ? together([ownToolShare(definition), { effect: 'harmless', extra: TOOL_PROMPT }])
      : unboundedShare('only a tool that the caller runs can be added in a message'),
  );
}

/** The most tokens of one definition, among the tools of a call and those that its messages define. */
export function largestToolOf(tools: unknown, messages: unknown): number {
  const added = objectsIn(messages).flatMap(({ content }) =>
    objectsIn(content).map(({ tool }) => (isJsonObject(tool) ? tool.definition : undefined)),
  );
  const definitions = [...objectsIn(tools), ...added.filter(isJsonObject)];
  const sizes = definitions.map((tool) => {
    const text = JSON.stringify(tool);
    return Buffer.byteLength(text) + rewrittenShare(tool).extra;
  });
  return sizes.reduce((most, size) => Math.max(most, size), OWN_SCHEMA_TOKENS);
}

const objectsIn = (list: unknown): JsonObject[] => (Array.isArray(list) ? list.filter(isJsonObject) : []);

function imageShare(source: unknown, readsImages: boolean): Share {
  const { type, data } = isJsonObject(source) ? source : {};
  if (!readsImages) return WHOLE_WINDOW;
  if (type === 'url' || type === 'file') return { effect: 'harmless', extra: IMAGE_TOKENS };
  if (type !== 'base64' || typeof data !== 'string') return unboundedShare('is no known source of an image');
  return { effect: 'harmless', extra: IMAGE_TOKENS - data.length };
}

function documentShare(source: unknown, facts: BlockFacts): Share {
  const held = isJsonObject(source) ? source : {};
  return SOURCES.get(textOf(held.type))?.(held, facts) ?? unboundedShare('is no known source of a document');
}

const SOURCES = compileWith(FACTS.SOURCES, (): BlockRule => asWindow, {
  text: ({ data }) => textShare(data),
  content: ({ content }, facts) => shareBelow('content', anthropicContent(content, facts)),
});

/** The input, passes and fees that a call's tools can add. */
export type ToolsShare = {
  readonly share: Share;
  /** How often the provider can run the model within one call. */
  readonly passes: number;
  readonly fees: Usage;
};

/** All tools of a call (`@anthropic-ai/sdk` 1.11, ToolUnion). */
export function anthropicTools(tools: unknown): ToolsShare {
  if (tools === undefined || tools === null) return { share: NOTHING, passes: 1, fees: {} };
  if (!Array.isArray(tools)) return { share: unboundedShare('is not a list'), passes: 1, fees: {} };
  const share = together(tools.map((tool, index) => shareBelow(index, toolShare(tool))));
  const ofServer = tools.filter(isJsonObject).filter((tool) => isServerTool(textOf(tool.type)));
  const uses = ofServer.reduce((sum, tool) => sum + Number(tool.max_uses), 0);
  const fees = ofServer.flatMap((tool) => {
    const unit = feeOf(textOf(tool.type));
    return unit === undefined ? [] : [[unit, Number(tool.max_uses)] as const];
  });
  return {
    share: tools.length === 0 ? NOTHING : together([share, { effect: 'harmless', extra: TOOL_PROMPT }]),
    passes: ofServer.length === 0 ? 1 : Math.max(uses, LOOP_LIMIT) + 1,
    fees: sumByUnit(fees),
  };
}

const { most: TOOL_PROMPT } = FACTS.TOOL_PROMPT;
const { most: OWN_SCHEMA_TOKENS } = FACTS.OWN_SCHEMA_TOKENS;
const { most: LOOP_LIMIT } = FACTS.LOOPS;
const UNBOUNDED: readonly string[] = FACTS.UNBOUNDED_TOOLS.names;
const ALWAYS_DIRECT: readonly string[] = FACTS.ALWAYS_DIRECT.names;

function toolShare(tool: unknown): Share {
  if (!isJsonObject(tool)) return unboundedShare('is not an object');
  const type = tool.type ?? 'custom';
  if (typeof type !== 'string') return unboundedShare('is no known tool');
  const rule = TOOLS.get(type) ?? DATED_TOOLS.get(withoutDate(type) ?? '');
  if (rule) return rule(tool);
  if (UNBOUNDED.includes(withoutDate(type) ?? type))
    return shareBelow('type', unboundedShare('the cost of this tool has no stated maximum'));
  return unknownShare('the cost of this tool is not known');
}

type ToolRule = (tool: JsonObject) => Share;

const TOOLS = compileWith(FACTS.TOOLS, (): ToolRule => () => WHOLE_WINDOW, { ownTool: ownToolShare });
const DATED_TOOLS = compileWith(FACTS.DATED_TOOLS, (): ToolRule => () => WHOLE_WINDOW, {
  ownSchema: () => ({ effect: 'harmless', extra: OWN_SCHEMA_TOKENS }),
  serverTool: serverToolShare,
});

/** `web_search` of `web_search_20250305`. */
const withoutDate = (type: string): string | undefined => /^(.+)_20\d{6}$/.exec(type)?.[1];

type DatedTool = keyof typeof FACTS.DATED_TOOLS.entries;

const datedTool = (type: string): Entry | undefined => {
  const name = withoutDate(type) ?? '';
  return Object.hasOwn(FACTS.DATED_TOOLS.entries, name)
    ? FACTS.DATED_TOOLS.entries[name as DatedTool]
    : undefined;
};

function isServerTool(type: string): boolean {
  const entry = datedTool(type);
  return entry?.effect === 'judged' && entry.by === 'serverTool';
}

/** The unit of the fee of a tool that the provider runs. */
function feeOf(type: string): string | undefined {
  const entry = datedTool(type);
  return entry?.effect === 'judged' ? entry.unit : undefined;
}

function sumByUnit(fees: readonly (readonly [unit: string, uses: number])[]): Usage {
  const sums: Record<string, number> = {};
  for (const [unit, uses] of fees) sums[unit] = (sums[unit] ?? 0) + uses;
  return sums;
}

/** A tool that the caller runs. If the provider's code may call it, the number of turns has no maximum. */
function ownToolShare(tool: JsonObject): Share {
  const callers = tool.allowed_callers ?? [];
  const direct = Array.isArray(callers) && callers.every((caller) => caller === 'direct');
  return direct ? rewrittenShare(tool) : shareBelow('allowed_callers', unboundedShare(ONLY_DIRECT));
}

const ONLY_DIRECT = 'only ["direct"] keeps the number of turns bounded';

/** Each search has a fee, and after every use the model reads its context again. */
function serverToolShare({ type, max_uses, allowed_callers }: JsonObject): Share {
  if (!isCount(max_uses))
    return shareBelow('max_uses', unboundedShare('is missing, so the number of uses has no maximum'));
  const callers = allowed_callers ?? (ALWAYS_DIRECT.includes(textOf(type)) ? ['direct'] : undefined);
  const direct =
    Array.isArray(callers) && callers.every((caller) => caller === 'direct') && callers.length > 0;
  return direct ? WHOLE_WINDOW : shareBelow('allowed_callers', unboundedShare(ONLY_DIRECT));
}
