export type NamedKey = { readonly id: string; readonly name: string; readonly revoked_at: number | null };

const ID = /^(vk_)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * The id of a key that a reader names by its id or its name. Several keys may have one name.
 * @param kind in words
 * @throws Error if no key in force has the name, or more than one
 */
export function idOfKey(which: string, kind: string, keys: readonly NamedKey[]): string {
  if (ID.test(which)) return which.toLowerCase();
  const named = keys.filter(({ name }) => name === which);
  const [first, ...others] = named.filter(({ revoked_at: end }) => end === null);
  if (first && others.length === 0) return first.id;
  throw new Error(
    first
      ? `Which: ${others.length + 1} ${kind}s have the name ${which}. Enter the id of one of them, which the page Keys shows.`
      : named.length > 0
        ? `Which: the ${kind} ${which} is revoked.`
        : `Which: no ${kind} among the newest has the name ${which}. Enter its id, which the page Keys shows.`,
  );
}
