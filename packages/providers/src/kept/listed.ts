import { createHash } from 'node:crypto';

/** A list that services read while they run. */
export type Listed = Origin & {
  /** The start of the SHA-256 of its text; for a bundled list, its version. */
  readonly id: string;
};

/** Where a list is from. */
export type Origin = {
  readonly source: 'bundled' | 'file' | 'url';
  /** The day of its release; for a list of the operator, the day on which its content was first read. */
  readonly date: string;
};

/** Why a text cannot be used as a list, as the rest of a sentence that begins with "it". */
export class ListError extends Error {
  /** A file may have any names, and its problem goes to logs, terminals and `/readyz`. */
  constructor(why: string) {
    super(printable(why).slice(0, WHY_MAX));
  }
}

const WHY_MAX = 400;
const UNPRINTABLE = /[\p{C}\u2028\u2029]+/gu;

/** A text without control characters and without characters that change the direction of writing. */
export const printable = (text: string): string => text.replace(UNPRINTABLE, ' ');

/** Whether a text can be shown unchanged: it is one line, and its characters are read in the order in which they are written. */
export const isPrintable = (text: string): boolean => printable(text) === text;

/** The largest list that is read. LiteLLM's list of prices has 2.5 MB. */
export const LIST_MAX_BYTES = 8 * 1024 * 1024;
export const TOO_LARGE = `is larger than ${LIST_MAX_BYTES} bytes`;

/** Identifies a list by its content. */
export const listId = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 12);
