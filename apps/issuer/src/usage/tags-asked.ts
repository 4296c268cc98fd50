import { RefusedError } from '@presign/schema';
import { and, type SQL, type SQLWrapper, sql } from 'drizzle-orm';

const PREFIX = 'metadata.';

/** The value of a row's metadata key. Null: the row has no such value. */
export const tagIn = (tags: SQLWrapper, key: string): SQL => sql`(${tags}::json ->> ${key}::text)`;

/** The key of metadata that a dimension names. Undefined: it is another dimension. */
export const keyOf = (dimension: string): string | undefined =>
  dimension.startsWith(PREFIX) ? dimension.slice(PREFIX.length) : undefined;

/** The condition for rows with these values. */
export const hasTags = (tags: SQLWrapper, wanted: Readonly<Record<string, string>> = {}): SQL | undefined =>
  and(...Object.entries(wanted).map(([key, value]) => sql`${tagIn(tags, key)} = ${value}`));

type Asked = {
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  readonly group_by?: readonly string[] | undefined;
};

/** @throws RefusedError `invalid_request` for a metadata key that is not recorded with calls */
export function refuseUndeclared(
  declared: readonly string[],
  { metadata = {}, group_by: by = [] }: Asked,
): void {
  const isUndeclared = (key: string | undefined) => key !== undefined && !declared.includes(key);
  const filtered = Object.keys(metadata).find(isUndeclared);
  const grouped = by.find((each) => isUndeclared(keyOf(each)));
  if (filtered === undefined && grouped === undefined) return;
  const [param, key] =
    filtered === undefined ? ['group_by', keyOf(grouped ?? '')] : [`${PREFIX}${filtered}`, filtered];
  const has = declared.length > 0 ? `it has ${declared.join(', ')}` : 'it is not set';
  const message = `${param}: the operator has not declared ${key} in USAGE_METADATA (${has}).`;
  throw new RefusedError({ code: 'invalid_request', param, message });
}
