/** A Markdown table with its columns padded, as the formatter of this repository writes it. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((_, column) => Math.max(3, ...[head, ...rows].map((row) => lengthOf(row[column]))));
  const line = (cells: readonly string[]) =>
    `| ${widths.map((width, column) => padded(cells[column] ?? '', width)).join(' | ')} |`;
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}

const lengthOf = (cell = ''): number => [...cell].length;
const padded = (cell: string, width: number): string => cell + ' '.repeat(width - lengthOf(cell));
