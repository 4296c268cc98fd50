import type { CallOptions } from './methods.ts';

// Any input fits `never`. The type of the fields is read from the method.
type List = (fields: never, options?: CallOptions) => Promise<Page>;
type Page = { readonly data: readonly unknown[]; readonly next_cursor: string | null };

type FieldsOf<Of extends List> = NonNullable<Parameters<Of>[0]>;
type Rest<Fields> = object extends Fields
  ? [fields?: Fields, options?: CallOptions]
  : [fields: Fields, options?: CallOptions];
type ItemOf<Of extends List> = Awaited<ReturnType<Of>>['data'][number];

/**
 * All entries of a list, over all its pages: `for await (const session of each(presign.listSessions))`. It requests a page
 * when the entries of the page before are used up.
 * @param list a method of the client whose answer has `data` and `next_cursor`
 * @param fields those of the method; `limit` is the length of a page, and not of the whole list
 */
export async function* each<Of extends List>(
  list: Of,
  ...[fields, options]: Rest<Omit<FieldsOf<Of>, 'cursor'>>
): AsyncGenerator<ItemOf<Of>, void, undefined> {
  let cursor: string | undefined;
  do {
    const page = await list({ ...fields, cursor } as never, options);
    yield* page.data as ItemOf<Of>[];
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
}
