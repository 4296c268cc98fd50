/** Names and values in turn, as Node and undici take them. */
export type FlatHeaders = string[];

/** The first value of a header, whatever the case of its name (`name` in lower case). */
export function headerOf(headers: FlatHeaders, name: string): string | undefined {
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i]?.toLowerCase() === name) return headers[i + 1];
  }
  return undefined;
}

/** The headers without those of these names (in lower case). */
export function withoutHeaders(headers: FlatHeaders, names: readonly string[]): FlatHeaders {
  const kept: FlatHeaders = [];
  for (let i = 0; i < headers.length; i += 2) {
    if (!names.includes(headers[i]?.toLowerCase() ?? '')) kept.push(headers[i] ?? '', headers[i + 1] ?? '');
  }
  return kept;
}

/** The headers with one value for this name (in lower case), in the place of its first. */
export function withHeader(headers: FlatHeaders, name: string, value: string): FlatHeaders {
  const at = headers.findIndex((each, i) => i % 2 === 0 && each.toLowerCase() === name);
  if (at < 0) return [...headers, name, value];
  const [before, after] = [headers.slice(0, at + 1), headers.slice(at + 2)];
  return [...before, value, ...withoutHeaders(after, [name])];
}
