import {
  type AllowList,
  allow,
  type Effect,
  harmless,
  judge,
  judgeEach,
  only,
  unknownEffect,
} from '../bounds/allow-list.ts';
import { isCount } from '../bounds/output-bound.ts';
import { isJsonObject, textOf } from '../json.ts';

/** Every field of a message request that may pass (`@anthropic-ai/sdk` 1.14, resources/beta/messages). */
export const MESSAGES_FIELDS: AllowList = allow(
  harmless(
    'cache_control', // the dearest input rate covers cache writes, those for an hour included
    'diagnostics',
    'messages', // judged block by block
    'metadata',
    'model',
    'max_tokens',
    'service_tier', // forced, see atStandardPrice
    'speed',
    'stop_sequences',
    'stream',
    'system',
    'temperature',
    'tool_choice',
    'tools',
    'top_k',
    'top_p',
  ),
  {
    container: { unbounded: 'code is billed by the hour' },
    context_management: (value) => editing(value),
    fallbacks: { unbounded: 'the models that it names have other prices' },
    inference_geo: only('inference in one region costs 1.1 times the listed price', 'global'),
    mcp_servers: { unbounded: 'the answers of the servers have no stated maximum' },
    output_config: (value) => judgeObject(harmless('effort', 'format'), value),
    output_format: 'harmless',
    thinking: (value) => anthropicThinking(value),
    thread: (value) => thread(value),
  },
);

/** Values of `anthropic-beta` that change no price by themselves: each field that they allow is judged. */
export const HARMLESS_BETAS: ReadonlySet<string> = new Set([
  'advanced-tool-use-2025-11-20',
  'cache-diagnosis-2026-04-07',
  'claude-code-20250219',
  'computer-use-2024-10-22',
  'computer-use-2025-01-24',
  'computer-use-2025-11-24',
  'context-management-2025-06-27',
  'effort-2025-11-24',
  'extended-cache-ttl-2025-04-11',
  'files-api-2025-04-14',
  'fine-grained-tool-streaming-2025-05-14',
  'inline-tools-2026-09-15',
  'interleaved-thinking-2025-05-14',
  'message-threads-2026-08-12',
  'mid-conversation-output-config-2026-07-01',
  'mid-conversation-system-clear-at-2026-08-21',
  'mid-conversation-tool-changes-2026-07-01',
  'model-context-window-exceeded-2025-08-26',
  'output-128k-2025-02-19',
  'pdfs-2024-09-25',
  'per-turn-control-2026-07-01',
  'prompt-caching-2024-07-31',
  'structured-outputs-2025-11-13',
  'thinking-display-updates-2026-08-18',
  'thinking-token-count-2026-05-13',
  'token-counting-2024-11-01',
  'token-efficient-tools-2025-02-19',
]);

/** `clear_at` leaves a system message out of later turns, `output_config` sets the effort of one turn. */
export const MESSAGE_FIELDS: AllowList = allow(harmless('role', 'content', 'clear_at'), {
  output_config: (value) => judgeObject(harmless('effort'), value),
});

export function anthropicThinking(value: unknown): Effect {
  if (!isJsonObject(value)) return { unbounded: 'is not an object' };
  return judge(
    allow(harmless('display'), {
      type: only('is no known kind of thinking', 'enabled', 'disabled', 'adaptive', 'between_tools'),
      budget_tokens: (budget) =>
        isCount(budget) ? 'harmless' : { unbounded: 'is not a whole number above 0' },
    }),
    value,
  );
}

/**
 * A thread keeps the conversation at the provider. Its turns are in the account of the key, which other URLs share, so
 * only its first turn passes, which has all of its input. The SDKs then send the whole conversation (`anthropicErrors`).
 */
const thread = (value: unknown): Effect =>
  judgeObject(allow({ type: only('reads a conversation that is not in the body', 'create') }), value);

/** Clearing only shortens the input. Compaction is a call of its own, whose usage is reported apart. */
const editing = (value: unknown): Effect =>
  judgeObject(
    allow({
      edits: (edits) =>
        judgeEach(edits, ({ type }) =>
          ['clear_tool_uses_20250919', 'clear_thinking_20251015'].includes(textOf(type))
            ? 'harmless'
            : unknownEffect('the cost of this edit is not known', 'type'),
        ),
    }),
    value,
  );

const judgeObject = (list: AllowList, value: unknown): Effect =>
  isJsonObject(value) ? judge(list, value) : { unbounded: 'is not an object' };
