import { type LeftOut, lengthLeftOut } from '@presign/schema';
import { isJsonObject, isText, type JsonObject } from '../json.ts';

/**
 * More characters than one token of any tokenizer stands for. The longest tokens that are published are runs of 128 spaces (cl100k and
 * o200k of OpenAI, Llama 3); pieces of SentencePiece have 16 characters at most. Text that compresses well, such as long runs, so costs
 * at least this, and other text far more. Twice as many leave room for vocabularies that are not published.
 */
const LONGEST_TOKEN = 256;

/** Every prompt has at least a turn and its end. A server that does not know the count yet states 0 or 1. */
const LEAST = 2;

/** The least input tokens, cached ones included, of a prompt that has so many characters of text. */
export const leastTokens = (characters: number): number =>
  Math.max(LEAST, Math.ceil(characters / LONGEST_TOKEN));

/**
 * The characters that are certainly in a prompt: texts, and blocks of text. It omits parts that a provider may drop or shorten, such as
 * thinking, tool results, images and documents.
 */
export function plainCharacters(content: unknown): number {
  if (isText(content)) return lengthOf(content);
  if (!Array.isArray(content)) return 0;
  return content.filter(isJsonObject).reduce((sum, block) => sum + charactersOf(block), 0);
}

const charactersOf = ({ type, text }: JsonObject): number =>
  type === 'text' && isText(text) ? lengthOf(text) : 0;

/** Characters of a text. At least so many, if it was left out. */
export const lengthOf = (text: string | LeftOut): number =>
  typeof text === 'string' ? text.length : lengthLeftOut(text);
