/** A line of CSV (RFC 4180). */
export const csvLine = (cells: readonly string[]): string => `${cells.join(',')}\r\n`;

/** A cell of text. Null is an empty cell; an empty text is a pair of quotes. */
export function textCell(value: string | null): string {
  if (value === null) return '';
  const safe = STARTS_FORMULA.test(value) ? `'${value}` : value;
  return safe === '' || /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/**
 * A spreadsheet runs a cell with such a start as a formula, and the holder of a URL can choose the text (OWASP, "CSV
 * Injection", which also names the full-width forms). Numbers are left alone: a sum may be negative.
 */
const STARTS_FORMULA = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;
