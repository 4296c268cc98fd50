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
import { isJsonObject, type JsonObject, textOf } from '../json.ts';
import type { Usage } from '../spend.ts';

/** The facts about a call that its blocks need. */
export type BlockFacts = {
  /** The model is one whose images have a known maximum. */
  readonly readsImages: boolean;
  /** The most tokens of the definition that a reference to a tool brings into the prompt once more. */
  readonly largestTool: () => number;
};

/** The content of a message or of `system`, block by block (`@anthropic-ai/sdk` 1.14, BetaContentBlockParam). */
export function anthropicContent(content: unknown, facts: BlockFacts): Share {
  if (content === undefined || content === null) return NOTHING;
  if (typeof content === 'string') return textShare(content);
  if (!Array.isArray(content)) return unboundedShare('is neither text nor a list');
  return shareOfEach(content, (block) => blockShare(block, facts));
}

/**
 * Most tokens of an image: a patch of 28 × 28 pixels is one, larger images are scaled down to 4,784 (1,568 before
 * Opus 4.7). https://platform.claude.com/docs/en/build-with-claude/vision#evaluate-image-size
 */
export const IMAGE_TOKENS = 4_784;

type BlockRule = (block: JsonObject, facts: BlockFacts) => Share;

const asText: BlockRule = (block) => textShare(block);
const asWindow: BlockRule = () => WHOLE_WINDOW;
/** The provider writes the whole definition in the place of the reference. */
const asReference: BlockRule = (block, { largestTool }) =>
  together([textShare(block), { effect: 'harmless', extra: largestTool() }]);

const BLOCKS: ReadonlyMap<unknown, BlockRule> = new Map<unknown, BlockRule>([
  ['text', asText],
  ['thinking', asText],
  ['redacted_thinking', asText],
  ['search_result', asText],
  ['tool_reference', asReference],
  ['tool_addition', ({ tool }, facts) => shareBelow('tool', toolChangeShare(tool, facts))],
  ['tool_removal', ({ tool }, facts) => shareBelow('tool', toolChangeShare(tool, facts))],
  ['tool_search_tool_result', asText],
  ['tool_use', rewrittenShare],
  ['server_tool_use', rewrittenShare],
  ['tool_result', ({ content }, facts) => shareBelow('content', anthropicContent(content, facts))],
  ['image', ({ source }, { readsImages }) => shareBelow('source', imageShare(source, readsImages))],
  [
    'document',
    ({ source, ...rest }, facts) =>
      together([textShare(rest), shareBelow('source', documentShare(source, facts))]),
  ],
  // These are encrypted or stored with the provider, so their length does not bound their tokens.
  ['web_search_tool_result', asWindow],
  ['web_fetch_tool_result', asWindow],
  ['code_execution_tool_result', asWindow],
  ['bash_code_execution_tool_result', asWindow],
  ['text_editor_code_execution_tool_result', asWindow],
]);

function blockShare(block: unknown, facts: BlockFacts): Share {
  if (!isJsonObject(block)) return unboundedShare('is not an object');
  const rule = BLOCKS.get(block.type);
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

/** The most tokens that one definition takes: among the tools of a call, and those that its messages define. */
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

/** The gateway cannot count the pages of a PDF, and their text has no stated maximum. */
function documentShare(source: unknown, facts: BlockFacts): Share {
  const { type, data, content } = isJsonObject(source) ? source : {};
  switch (type) {
    case 'text':
      return textShare(data);
    case 'content':
      return shareBelow('content', anthropicContent(content, facts));
    case 'base64':
    case 'url':
    case 'file':
      return WHOLE_WINDOW;
    default:
      return unboundedShare('is no known source of a document');
  }
}

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
  const ofServer = tools.filter(isJsonObject).filter((tool) => SERVER_TOOL.test(textOf(tool.type)));
  const uses = ofServer.reduce((sum, tool) => sum + Number(tool.max_uses), 0);
  const searches = ofServer
    .filter((tool) => textOf(tool.type).startsWith('web_search'))
    .reduce((sum, tool) => sum + Number(tool.max_uses), 0);
  return {
    share: tools.length === 0 ? NOTHING : together([share, { effect: 'harmless', extra: TOOL_PROMPT }]),
    passes: ofServer.length === 0 ? 1 : Math.max(uses, LOOP_LIMIT) + 1,
    fees: searches > 0 ? { web_searches: searches } : {},
  };
}

/**
 * The system prompt that enables tools has 159 to 804 tokens, by model and tool choice.
 * https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview#pricing
 */
export const TOOL_PROMPT = 1_024;

/**
 * The provider knows the schemas of some tools: bash adds 245 tokens (325 since Opus 4.7), the text editor 700,
 * computer use up to 499 and 735. (The same page, and the page of each tool.)
 */
const OWN_SCHEMA = /^(bash|text_editor|computer)_20\d{6}$/;
const OWN_SCHEMA_TOKENS = 2_048;

/** The holder runs these tools. The length of their schemas is not published. */
const SCHEMA_UNKNOWN = /^(memory_20\d{6}|computer_toolset_20\d{6}|browser_toolset_20\d{6})$/;

const SERVER_TOOL = /^web_(search|fetch)_20\d{6}$/;
/** The first versions of these tools. Later ones may run code between uses, unless only direct calls are allowed. */
const ALWAYS_DIRECT = /^(web_search_20250305|web_fetch_20250910)$/;
/**
 * The provider runs the model again after each use, and after a use that it refused because `max_uses` is spent, until
 * the limit of 10 loops pauses the turn.
 * https://platform.claude.com/docs/en/agents-and-tools/tool-use/server-tools#the-server-side-loop-and-pause_turn
 */
const LOOP_LIMIT = 10;

function toolShare(tool: unknown): Share {
  if (!isJsonObject(tool)) return unboundedShare('is not an object');
  const type = tool.type ?? 'custom';
  if (type === 'custom') return ownToolShare(tool);
  if (typeof type !== 'string') return unboundedShare('is no known tool');
  if (OWN_SCHEMA.test(type)) return { effect: 'harmless', extra: OWN_SCHEMA_TOKENS };
  if (SCHEMA_UNKNOWN.test(type)) return WHOLE_WINDOW;
  if (SERVER_TOOL.test(type)) return serverToolShare(type, tool);
  return shareBelow('type', unboundedShare('the cost of this tool has no stated maximum'));
}

/** A tool that the caller runs. Code of the provider that may call it makes turns without a maximum. */
function ownToolShare(tool: JsonObject): Share {
  const callers = tool.allowed_callers ?? [];
  const direct = Array.isArray(callers) && callers.every((caller) => caller === 'direct');
  return direct ? rewrittenShare(tool) : shareBelow('allowed_callers', unboundedShare(ONLY_DIRECT));
}

const ONLY_DIRECT = 'only ["direct"] keeps the number of turns bounded';

/** Each search has a fee, and after every use the model reads its context again. */
function serverToolShare(type: string, { max_uses, allowed_callers }: JsonObject): Share {
  if (!isCount(max_uses))
    return shareBelow('max_uses', unboundedShare('is missing, so the number of uses has no maximum'));
  const callers = allowed_callers ?? (ALWAYS_DIRECT.test(type) ? ['direct'] : undefined);
  const direct =
    Array.isArray(callers) && callers.every((caller) => caller === 'direct') && callers.length > 0;
  return direct ? WHOLE_WINDOW : shareBelow('allowed_callers', unboundedShare(ONLY_DIRECT));
}
