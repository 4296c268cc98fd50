import { allow, judge } from '../bounds/allow-list.ts';
import { writeOutputBound } from '../bounds/output-bound.ts';
import { textOf } from '../bounds/read-count.ts';
import { isJsonObject, type JsonObject } from '../dialect.ts';
import type { Bound, Reported, Spend, Usage } from '../spend.ts';
import { atTier, BETA_HEADERS, boundText, modelIn } from './chat.ts';
import { isErrorOf } from './errors.ts';
import { standardTier } from './fields.ts';
import { argumentsIn, boundInput, inputOf } from './input.ts';
import { responsesFields, type ServerTools, serverToolsIn } from './responses-fields.ts';
import type { ProviderRules } from './rules.ts';
import { readResponseEvents } from './stream.ts';
import { readResponsesUsage, reported } from './usage.ts';

/** One provider's Responses. */
export type ResponsesRules = {
  readonly provider: ProviderRules;
  /** Tools it runs at most `max_tool_calls` times; none where it documents no such maximum. */
  readonly serverTools?: ServerTools;
  /** Lowest `max_output_tokens` it takes. */
  readonly minimum: number;
};

/** Spending on Responses. Tools that the provider runs make turns, each of which may read a whole window. */
export function openaiResponsesSpend({ provider, minimum, serverTools = new Map() }: ResponsesRules): Spend {
  const fields = allow(responsesFields(provider.input, serverTools), {
    service_tier: standardTier(provider.standardTier),
  });
  const usageOf = (response: JsonObject): Reported | undefined =>
    reported(response, withServerTools(readResponsesUsage(response.usage), response), provider);
  return {
    model: modelIn,
    streams: (body) => body.stream === true,
    bound: (body, { bytes, facts }) => {
      const input = () =>
        boundInput(judge(fields, body), provider.input, facts, () =>
          inputOf(body, { bytes, input: provider.input }, partsOf(body)),
        );
      const bounded = boundText(body, facts, provider, { input, times: 1, minimum });
      return 'unbounded' in bounded ? bounded : { bound: withTurns(bounded.bound, body, serverTools) };
    },
    withOutputBound: (body, tokens) => writeOutputBound(body, 'max_output_tokens', tokens),
    atStandardPrice: (body) => atTier(body, provider.standardTier),
    pricedHeaders: BETA_HEADERS,
    readAnswer: (answer) => (isJsonObject(answer) && isOver(answer) ? usageOf(answer) : undefined),
    readStream: () => readResponseEvents(usageOf),
    isOwnError: (answer) => isErrorOf(provider.errors, answer),
  };
}

function partsOf({ input, tools, text }: JsonObject) {
  const items = Array.isArray(input) ? input : [input];
  return {
    items,
    rewritten: [tools, text, ...items.flatMap(argumentsIn)],
    tools: Array.isArray(tools) ? tools.length : 0,
  };
}

/**
 * With tools that the provider runs: one turn for each call and one more, and each call's fee. The bound of the
 * output is the whole response's by its description, but turns end before it is known, so each may have it.
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

/** Searches are paid for by the call and stand in the output, not in the usage; other tools' fees cannot be told. */
function withServerTools(usage: Usage | undefined, { output }: JsonObject): Usage | undefined {
  if (usage === undefined || !Array.isArray(output)) return usage;
  const items = output.filter(isJsonObject);
  if (items.some(({ type }) => UNPRICED_CALLS.includes(textOf(type)))) return undefined;
  const searches = items.filter((item) => item.type === 'web_search_call' && isSearch(item)).length;
  const fileSearches = items.filter((item) => item.type === 'file_search_call').length;
  return {
    ...usage,
    ...(searches > 0 && { web_searches: searches }),
    ...(fileSearches > 0 && { storage_searches: fileSearches }),
  };
}

const UNPRICED_CALLS: readonly string[] = [
  'code_interpreter_call',
  'image_generation_call',
  'shell_call',
  'program',
  'x_search_call',
];

/** Opening a page and searching in it are not paid for. https://platform.openai.com/docs/pricing#built-in-tools */
const isSearch = ({ action }: JsonObject): boolean =>
  !isJsonObject(action) || (action.type !== 'open_page' && action.type !== 'find_in_page');

/** A response still under way (in the background) has no usage yet. */
const isOver = ({ status }: JsonObject): boolean => status !== 'queued' && status !== 'in_progress';
