import * as FACTS from '../facts/acted-on.ts';

const NEVER_RETURNED = Object.values(FACTS).flatMap(({ names }) => names);

/**
 * The header of `facts/acted-on.ts` that an entry of an allow-list would let pass.
 * @param entry in lower case: a name, or the beginning of names and `*`
 */
export const actedOnBy = (entry: string): string | undefined =>
  NEVER_RETURNED.find((never) => {
    if (never.startsWith('*')) return entry.endsWith(never.slice(1));
    const [start, name] = [entry.replace(/\*$/, ''), never.replace(/\*$/, '')];
    return (
      start === name ||
      (never.endsWith('*') && start.startsWith(name)) ||
      (entry.endsWith('*') && name.startsWith(start))
    );
  });
