import {
  NOTHING,
  rewrittenShare,
  type Share,
  shareBelow,
  shareOfEach,
  textShare,
  together,
  unboundedShare,
  WHOLE_WINDOW,
} from '../bounds/input-share.ts';
import { isJsonObject, type JsonObject } from '../dialect.ts';

/**
 * The content of a message or of `system`, block by block (`@anthropic-ai/sdk` 1.11, ContentBlockParam).
 * @param readsImages whether the model is one whose images have a known maximum
 */
export function anthropicContent(content: unknown, readsImages: boolean): Share {
  if (content === undefined || content === null) return NOTHING;
  if (typeof content === 'string') return textShare(content);
  if (!Array.isArray(content)) return unboundedShare('is neither text nor a list');
  return shareOfEach(content, (block) => blockShare(block, readsImages));
}

/**
 * Most tokens of an image: a patch of 28 × 28 pixels is one, larger images are scaled down to 4,784 (1,568 before
 * Opus 4.7). https://platform.claude.com/docs/en/build-with-claude/vision#evaluate-image-size
 */
const IMAGE_TOKENS = 4_784;

type BlockRule = (block: JsonObject, readsImages: boolean) => Share;

const asText: BlockRule = (block) => textShare(block);
const asWindow: BlockRule = () => WHOLE_WINDOW;

const BLOCKS: ReadonlyMap<unknown, BlockRule> = new Map<unknown, BlockRule>([
  ['text', asText],
  ['thinking', asText],
  ['redacted_thinking', asText],
  ['search_result', asText],
  ['tool_reference', asText],
  ['tool_search_tool_result', asText],
  ['tool_use', rewrittenShare],
  ['server_tool_use', rewrittenShare],
  [
    'tool_result',
    ({ content }, readsImages) => shareBelow('content', anthropicContent(content, readsImages)),
  ],
  ['image', ({ source }, readsImages) => shareBelow('source', imageShare(source, readsImages))],
  [
    'document',
    ({ source, ...rest }, readsImages) =>
      together([textShare(rest), shareBelow('source', documentShare(source, readsImages))]),
  ],
  // What these hold is encrypted, or stored with the provider: its length says nothing of its tokens.
  ['web_search_tool_result', asWindow],
  ['web_fetch_tool_result', asWindow],
  ['code_execution_tool_result', asWindow],
  ['bash_code_execution_tool_result', asWindow],
  ['text_editor_code_execution_tool_result', asWindow],
]);

function blockShare(block: unknown, readsImages: boolean): Share {
  if (!isJsonObject(block)) return unboundedShare('is not an object');
  const rule = BLOCKS.get(block.type);
  return rule === undefined
    ? shareBelow('type', unboundedShare('what this kind of block can cost is not known'))
    : rule(block, readsImages);
}

function imageShare(source: unknown, readsImages: boolean): Share {
  const { type, data } = isJsonObject(source) ? source : {};
  if (!readsImages) return WHOLE_WINDOW;
  if (type === 'url' || type === 'file') return { effect: 'harmless', extra: IMAGE_TOKENS };
  if (type !== 'base64' || typeof data !== 'string') return unboundedShare('is no known source of an image');
  return { effect: 'harmless', extra: IMAGE_TOKENS - data.length };
}

/** A PDF's pages cannot be counted from outside, and their text has no stated maximum. */
function documentShare(source: unknown, readsImages: boolean): Share {
  const { type, data, content } = isJsonObject(source) ? source : {};
  switch (type) {
    case 'text':
      return textShare(data);
    case 'content':
      return shareBelow('content', anthropicContent(content, readsImages));
    case 'base64':
    case 'url':
    case 'file':
      return WHOLE_WINDOW;
    default:
      return unboundedShare('is no known source of a document');
  }
}
