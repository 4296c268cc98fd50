import { USAGE_SUMS, type UsageDimension } from '@presign/schema';
import type { UsageGroup } from './sum-usage.ts';

/** Writes groups of usage as CSV (RFC 4180): a header, one line a group, CRLF at every end. */
export function writeCsv(by: readonly UsageDimension[], groups: readonly UsageGroup[]): string {
  const lines = groups.map((group) => [
    ...group.by.map(([, value]) => textCell(value)),
    ...USAGE_SUMS.map((name) => String(group.sums[name])),
  ]);
  return [[...by, ...USAGE_SUMS], ...lines].map((cells) => `${cells.join(',')}\r\n`).join('');
}

/** Nothing is an empty cell; a text without characters is one in quotes. */
function textCell(value: string | null): string {
  if (value === null) return '';
  const safe = STARTS_FORMULA.test(value) ? `'${value}` : value;
  return safe === '' || /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/**
 * A spreadsheet runs a cell that begins so as a formula, and what stands here may come from the holder of a URL
 * (OWASP, "CSV Injection", which names the full-width forms, too). Numbers are not touched: a sum may be below 0.
 */
const STARTS_FORMULA = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;
