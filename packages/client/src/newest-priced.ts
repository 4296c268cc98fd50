/**
 * The newest version of a model among those that have a price: names that differ from it in the version alone, such as
 * `gpt-6.1-sol` for `gpt-6.2-sol`.
 */
export function newestPriced(model: string, priced: readonly string[]): string | undefined {
  const wanted = parse(model);
  if (!wanted) return undefined;
  const family = priced.flatMap((name) => {
    const parsed = parse(name);
    return parsed?.before === wanted.before && parsed.after === wanted.after ? { name, ...parsed } : [];
  });
  return family.sort((a, b) => newerFirst(a.version, b.version))[0]?.name;
}

/** A version has numbers of one or two digits, so a date in a name is no version. */
const VERSION = /^(.*?-)(\d{1,2}(?:[.-]\d{1,2})*)(-[a-z]\w*)?$/;

function parse(model: string) {
  const [, before, version, after = ''] = VERSION.exec(model.slice(0, 100)) ?? [];
  if (before === undefined || version === undefined) return undefined;
  return { before, after, version: version.split(/[.-]/).map(Number) };
}

function newerFirst(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((part, i) => part !== b[i]);
  if (at < 0) return b.length - a.length;
  return (b[at] ?? -1) - (a[at] ?? -1);
}
