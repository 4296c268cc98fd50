import { ledger, type Tags } from '@presign/schema/ledger-tables';
import { grants } from '@presign/schema/tables';
import { type SQL, sql } from 'drizzle-orm';

/** As long as an `external_user`. A longer value, an object or a list is not recorded with calls. */
const VALUE_MAX_CHARS = 255;

/**
 * Escapes that JSON allows and Postgres cannot store as text: NUL, and half of a surrogate pair, which JavaScript escapes only if it is
 * alone. One such escape makes the whole document unreadable, so U+FFFD replaces each. The backslash before an escape may itself be
 * escaped.
 */
const UNREADABLE = String.raw`(?<!\\)((?:\\\\)*)\\u(?:0000|[dD][89a-fA-F][0-9a-fA-F]{2})`;
const REPLACED = String.raw`\1\\ufffd`;

/**
 * The values of these keys in the metadata of a grant; a server of a bundle has those of the bundle. Null if it has none or no key is
 * declared.
 * @param keys in a fixed order, so that the same values give the same text, by which sums are grouped
 */
export function tagsOf(keys: readonly string[]): SQL<Tags | null> {
  const none = sql<Tags | null>`null`.mapWith(ledger.tags);
  if (keys.length === 0) return none;
  const text = sql`coalesce(${grants.metadata}, (select b.metadata from ${grants} b where b.id = ${grants.bundleId}))`;
  const metadata = sql`regexp_replace(${text}, ${UNREADABLE}::text, ${REPLACED}::text, 'g')::json`;
  const names = sql.join(
    keys.map((key) => sql`${key}`),
    sql`, `,
  );
  // `offset 0` prevents Postgres from reading the document again for each key.
  return sql<Tags | null>`(select json_object_agg(key, doc ->> key order by key)::text
    from (select ${metadata} as doc offset 0) as given, unnest(array[${names}]::text[]) as key
    where json_typeof(doc -> key) in ('string', 'number', 'boolean') and length(doc ->> key) <= ${VALUE_MAX_CHARS}
  )`.mapWith(ledger.tags);
}
