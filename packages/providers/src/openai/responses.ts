import { textPlaces } from '@presign/schema';
import { judge } from '../bounds/allow-list.ts';
import { writeOutputBound } from '../bounds/output-bound.ts';
import { type Dialect, MODEL, NAMES } from '../dialect.ts';
import { ANSWERED_CALLS, FREE_ACTIONS, PREVIEW_SEARCHES } from '../facts/openai/responses.ts';
import { isJsonObject, isText, type JsonObject, textOf } from '../json.ts';
import type { Bound, DialectSpend, Usage } from '../spend.ts';
import { hasText } from '../usage/content.ts';
import { RESPONSES_COUNTS } from '../usage/known.ts';
import { unknownCounts } from '../usage/known-counts.ts';
import type { Content, Statement } from '../usage/record.ts';
import { atTier, boundText, modelIn } from './chat.ts';
import { argumentsIn, boundPrompts, inputOf, plainTexts } from './input.ts';
import {
  NO_SERVER_TOOLS,
  responsesFields,
  type ServerTools,
  serverToolsIn,
  toolsIn,
} from './responses-fields.ts';
import { isErrorOf, type OpenaiRules } from './rules.ts';
import { readResponseEvents } from './stream.ts';
import { apiParts, readResponsesUsage, stated } from './usage.ts';

/** How a vendor's Responses differ from the API without tools of its own. */
export type ResponsesDifferences = {
  /** Tools that it runs at most `max_tool_calls` times. Empty if it documents no such maximum. */
  readonly serverTools?: ServerTools;
  /** Lowest `max_output_tokens` that it takes, if above 1. */
  readonly minimum?: number;
};

/** Responses (`openai` SDK, resources/responses). Without rules nothing may be spent on them. */
export const openaiResponses = (
  id: string,
  rules: OpenaiRules | undefined,
  differences: ResponsesDifferences = {},
): Dialect => ({
  id,
  settings: [MODEL, { at: ['max_output_tokens'], names: NAMES.outputBound }],
  ...(rules && { spend: responsesSpend(rules, differences) }),
});

/** Tools that the provider runs make turns, each of which may read a whole window. */
function responsesSpend(
  rules: OpenaiRules,
  { minimum = 1, serverTools = NO_SERVER_TOOLS }: ResponsesDifferences,
): DialectSpend {
  const fields = responsesFields(rules, serverTools);
  const usageOf = (response: JsonObject): Statement => ({
    ...stated(response, withServerTools(readResponsesUsage(response.usage), response)),
    parts: apiParts(response.usage),
    content: contentIn(response),
    unknown: [...unknownCounts(response.usage, RESPONSES_COUNTS), ...costlyItems(response)],
  });
  return {
    unreadTexts: textPlaces(RESPONSE_TEXTS, { onlyAscii: rules.input.normalises }),
    model: modelIn,
    streams: (body) => body.stream === true,
    boundBody: (body, { bytes, facts, saved }) => {
      const input = () =>
        boundPrompts(judge(fields, body), facts, (most) =>
          inputOf(body, { bytes, input: rules.input, saved, most }, partsOf(body)),
        );
      const bounded = boundText(body, facts, { input, times: 1, minimum });
      return 'unbounded' in bounded ? bounded : { bound: withTurns(bounded.bound, body, serverTools) };
    },
    withOutputBound: (body, tokens) => writeOutputBound(body, 'max_output_tokens', tokens),
    atStandardPrice: (body) => atTier(body, rules.standardTier),
    readAnswer: (answer) => (isJsonObject(answer) && isOver(answer) ? usageOf(answer) : undefined),
    readStream: () => readResponseEvents(usageOf),
    isOwnError: (answer) => isErrorOf(rules.errors, answer),
  };
}

const RESPONSE_TEXTS = [
  ...['instructions', 'input', 'input[].content', 'input[].content[].text'],
  ...['input[].output', 'input[].output[].text'],
];

function partsOf(body: JsonObject) {
  const { input, instructions, text } = body;
  const items = Array.isArray(input) ? input : [input];
  const tools = toolsIn(body);
  return {
    items,
    rewritten: () => [tools, text, ...items.flatMap(argumentsIn)],
    tools: tools.reduce<number>((sum, tool) => sum + 1 + inNamespace(tool), 0),
    texts: () => [...[instructions, input].filter(isText), ...plainTexts(items)],
  };
}

const inNamespace = (tool: unknown): number =>
  isJsonObject(tool) && Array.isArray(tool.tools) ? tool.tools.length : 0;

/**
 * Tools that the provider runs add one turn for each call and one more, and each call's fee. The API describes the
 * bound of the output as the whole response's. Turns end before that total is known, so each turn may use it.
 */
function withTurns(bound: Bound, body: JsonObject, serverTools: ServerTools): Bound {
  const units = serverToolsIn(body, serverTools);
  if (units.length === 0 || bound.output === undefined) return bound;
  const calls = Number(body.max_tool_calls);
  return {
    inputTokens: bound.inputTokens * (calls + 1),
    fees: Object.fromEntries(units.map((unit) => [unit, calls])),
    output: { ...bound.output, times: calls + 1 },
  };
}

/** The output lists searches, which have a fee. The usage does not list them. */
function withServerTools(usage: Usage | undefined, { output, tools }: JsonObject): Usage | undefined {
  if (usage === undefined || !Array.isArray(output)) return usage;
  const items = output.filter(isJsonObject);
  const searches = items.filter((item) => item.type === 'web_search_call' && isSearch(item)).length;
  const fileSearches = items.filter((item) => item.type === 'file_search_call').length;
  const unit = previews(tools) ? 'preview_searches' : 'web_searches';
  return {
    ...usage,
    ...(searches > 0 && { [unit]: searches }),
    ...(fileSearches > 0 && { storage_searches: fileSearches }),
  };
}

/** Whether the tool of the searches is, or may be, `web_search_preview`, which has a fee of its own. A response repeats its tools. */
const previews = (tools: unknown): boolean =>
  Array.isArray(tools) &&
  tools.some((tool) => isJsonObject(tool) && PREVIEW_SEARCHES.matching.test(textOf(tool.type)));

/** Items of tools whose fee the usage does not report, or that this version does not know. */
const costlyItems = ({ output }: JsonObject): readonly string[] =>
  Array.isArray(output)
    ? output.flatMap((item) => (isJsonObject(item) && isCostly(textOf(item.type)) ? textOf(item.type) : []))
    : [];

const isCostly = (type: string): boolean =>
  type === 'program' || (type.endsWith('_call') && !FREE_CALLS.has(type));

const FREE_CALLS: ReadonlySet<string> = new Set(ANSWERED_CALLS.names);

/** Whether the model wrote something: text, thoughts, calls of tools. Messages may be empty or refusals. */
const contentIn = ({ output }: JsonObject): Content | undefined =>
  Array.isArray(output) && output.filter(isJsonObject).some(isWritten) ? 'written' : undefined;

const isWritten = ({ type, content }: JsonObject): boolean =>
  type === 'message' ? hasText(content) : type !== 'mcp_list_tools';

const isSearch = ({ action }: JsonObject): boolean =>
  !isJsonObject(action) || !FREE_ACTIONS.names.includes(textOf(action.type));

/** A response that runs in the background has no usage yet. */
const isOver = ({ status }: JsonObject): boolean => status !== 'queued' && status !== 'in_progress';
