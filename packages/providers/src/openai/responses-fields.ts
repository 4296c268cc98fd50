import {
  type AllowList,
  allow,
  below,
  type Effect,
  harmless,
  judge,
  judgeEach,
  only,
  type Rule,
  unknownEffect,
} from '../bounds/allow-list.ts';
import { isJsonObject, isTokens, type JsonObject, textOf } from '../json.ts';
import { CACHE_AND_RECORDS } from './fields.ts';
import {
  AUDIO_REFUSED,
  imagePart,
  judgeContent,
  objectOf,
  type Parts,
  partOf,
  textPart,
} from './messages.ts';
import type { InputRules } from './rules.ts';

/** Tools that a provider runs under `max_tool_calls`, with the unit of their fee. */
export type ServerTools = ReadonlyMap<string, 'web_searches' | 'storage_searches'>;

/** Every field of a response that may pass (`openai` SDK, resources/responses, ResponseCreateParams). */
export const responsesFields = (input: InputRules, serverTools: ServerTools): AllowList =>
  allow(
    CACHE_AND_RECORDS,
    harmless('model', 'instructions', 'temperature', 'top_p', 'top_logprobs', 'user', 'text', 'include'),
    harmless('tool_choice', 'parallel_tool_calls', 'truncation'),
    harmless('max_output_tokens', 'max_tokens', 'max_completion_tokens'),
    {
      input: judgeInput(input, serverTools),
      tools: judgeTools(serverTools),
      max_tool_calls: (value) =>
        isCalls(value) ? 'harmless' : { unbounded: `is not a whole number up to ${MOST_CALLS}` },
      reasoning,
      stream: only('is neither true nor false', true, false),
      stream_options: objectOf('include_obfuscation'),
      background: only('the answer would not carry the usage', false),
      client_metadata: texts,
      previous_response_id: 'whole window',
      conversation: 'whole window',
      // A stored prompt may bring tools and another model.
      prompt: { unbounded: 'the contents of a stored prompt are not known' },
      context_management: { unbounded: 'compaction adds work that has no bound' },
    },
  );

/** The units of the fees of tools that the provider runs in this call. */
export function serverToolsIn(body: JsonObject, serverTools: ServerTools): readonly string[] {
  const tools = toolsIn(body).filter(isJsonObject);
  const units = tools.flatMap(({ type }) => serverTools.get(textOf(type)) ?? []);
  return [...new Set(units)];
}

/** All tools that a body defines: at its top, and in the items of its input that bring tools. */
export function toolsIn({ tools, input }: JsonObject): readonly unknown[] {
  const items = Array.isArray(input) ? input.filter(isJsonObject) : [];
  const brought = items.filter(({ type }) => TOOL_ITEMS.includes(textOf(type))).map((item) => item.tools);
  return [tools, ...brought].filter(Array.isArray).flat();
}

/** Items that define tools in the midst of the input, as Codex 0.171 sends all of its tools. */
const TOOL_ITEMS: readonly string[] = ['additional_tools', 'tool_search_output'];

/** `pro` writes an answer in several runs, and their number is not documented. */
const reasoning: Rule = (value) =>
  isJsonObject(value)
    ? judge(
        allow(harmless('effort', 'summary', 'generate_summary', 'context', 'enabled', 'exclude'), {
          mode: only('costs more than the standard mode', 'standard'),
        }),
        value,
      )
    : { unbounded: 'is not an object' };

/** OpenAI's own client Codex sends texts about itself (openai/codex, codex-rs/codex-api/src/common.rs). */
const texts: Rule = (value) =>
  isJsonObject(value) && Object.values(value).every((each) => typeof each === 'string')
    ? 'harmless'
    : { unbounded: 'is not an object of texts' };

const judgeTools =
  (serverTools: ServerTools) =>
  (tools: unknown, body: JsonObject): Effect =>
    judgeEach(tools, (tool) => judgeTool(tool, serverTools, body));

function judgeTool(tool: JsonObject, serverTools: ServerTools, body: JsonObject): Effect {
  const type = textOf(tool.type);
  if (OWN_TOOLS.includes(type)) return 'harmless';
  if (type === 'namespace') return judgeNamespace(tool);
  if (type === 'tool_search') return judgeToolSearch(tool);
  if (HIDDEN_PROMPT_TOOLS.includes(type)) return 'whole window';
  if (!serverTools.has(type)) return unknownEffect('is a tool whose cost is not known', 'type');
  if (isCalls(body.max_tool_calls)) return 'whole window';
  return {
    unbounded: 'has no maximum of uses without max_tool_calls',
    at: 'type',
  };
}

/** More than any call needs, and few enough that the product with a window stays exact. */
const MOST_CALLS = 1_000;

const isCalls = (value: unknown): boolean => isTokens(value) && value <= MOST_CALLS;

const OWN_TOOLS = ['function', 'custom'];

/** Tools that the caller runs and the provider describes to the model. */
const HIDDEN_PROMPT_TOOLS = ['local_shell', 'apply_patch', 'computer', 'computer_use_preview'];

function judgeNamespace({ tools }: JsonObject): Effect {
  const own = judgeEach(tools, ({ type }) =>
    OWN_TOOLS.includes(textOf(type))
      ? 'harmless'
      : unknownEffect('is a tool whose cost is not known', 'type'),
  );
  return below('tools', own);
}

/** The caller searches its own tools. Searches of the provider's are turns whose number has no maximum. */
const judgeToolSearch = ({ execution }: JsonObject): Effect =>
  execution === 'client'
    ? 'harmless'
    : { unbounded: 'lets the provider search for tools, which has no maximum', at: 'type' };

/** A text, or messages and items of earlier turns. */
const judgeInput =
  ({ imageTokens }: InputRules, serverTools: ServerTools): Rule =>
  (input, body) => {
    if (typeof input === 'string') return 'harmless';
    const parts = partsFor(imageTokens?.(body.model) !== undefined);
    const bringsTools = allow(harmless('type', 'id', 'role', 'call_id', 'status', 'execution'), {
      tools: (tools) => judgeTools(serverTools)(tools, body),
    });
    return judgeEach(input, (item) =>
      TOOL_ITEMS.includes(textOf(item.type)) ? judge(bringsTools, item) : judgeItem(item, parts),
    );
  };

function judgeItem(item: JsonObject, parts: Parts): Effect {
  const type = item.type ?? 'message';
  if (type === 'tool_search_call' && item.execution === 'client') return judge(CLIENT_SEARCH, item);
  if (typeof type === 'string' && STORED_ITEMS.includes(type)) return 'whole window';
  const content = TEXT_ITEMS.get(textOf(type));
  if (content === undefined) return unknownEffect('is an item whose cost is not known', 'type');
  return judge(allow(ITEM, { [content]: (value: unknown) => judgeContent(parts, value) }), item);
}

/** Items whose text is in the body, with the field of their content. */
const TEXT_ITEMS: ReadonlyMap<string, string> = new Map([
  ['message', 'content'],
  ['function_call', 'content'],
  ['function_call_output', 'output'],
  ['custom_tool_call', 'content'],
  ['custom_tool_call_output', 'output'],
]);

const ITEM = harmless(
  'type',
  'id',
  'role',
  'status',
  'phase',
  'call_id',
  'name',
  'namespace',
  'arguments',
  'input',
  'caller',
);

const CLIENT_SEARCH = harmless('type', 'id', 'call_id', 'execution', 'status', 'arguments');

/** Items that refer to more than their text: stored, encrypted or made by the provider's tools. They start no work. */
const STORED_ITEMS: readonly string[] = [
  'reasoning',
  'item_reference',
  'compaction',
  'web_search_call',
  'file_search_call',
  'code_interpreter_call',
  'image_generation_call',
  'computer_call',
  'computer_call_output',
  'local_shell_call',
  'local_shell_call_output',
  'shell_call',
  'shell_call_output',
  'apply_patch_call',
  'apply_patch_call_output',
  'mcp_list_tools',
  'mcp_call',
  'tool_search_call',
];

const partsFor = (imagesKnown: boolean): Parts =>
  new Map<string, Rule>([
    ['input_text', textPart('text')],
    ['output_text', textPart('text')],
    ['refusal', textPart('refusal')],
    ['input_image', imagePart(['image_url', 'detail', 'file_id'], imagesKnown)],
    ['input_file', fileOf],
    ['input_audio', AUDIO_REFUSED],
  ]);

/** Text and images of the pages: together at most the whole window. */
const fileOf: Rule = (part) => {
  const effect = filePart(part);
  return typeof effect === 'object' ? effect : 'whole window';
};

const filePart = partOf(
  harmless('file_data', 'file_id', 'file_url', 'filename', 'detail', 'prompt_cache_breakpoint'),
);
