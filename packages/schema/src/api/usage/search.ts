import * as z from 'zod';
import { QUERY } from '../../fields/invalid-request.ts';
import { limitUpTo, PAGE_DEFAULT, PAGE_MAX } from '../../fields/page.ts';
import { name } from './reports.ts';

/** The kinds of names that a search finds. */
export const SEARCH_KINDS = ['external_user', 'session'] as const;
export type SearchKind = (typeof SEARCH_KINDS)[number];
const kind = z.enum(SEARCH_KINDS, `expected one of ${SEARCH_KINDS.join(', ')}`).meta({ id: 'SearchKind' });

/** The first users by name, and the newest sessions, in whose names a search looks for a part. */
export const SEARCHED = { users: 20_000, sessions: 10_000 } as const;

/** Query of `GET /v1/search`. */
export const searchQuery = z.strictObject(
  {
    contains: name.meta({
      description: 'A part of the name. Upper and lower case are the same.',
      examples: ['acme'],
    }),
    kind: kind.optional().meta({ description: 'Only names of this kind.' }),
    limit: limitUpTo(PAGE_MAX, PAGE_DEFAULT, 'The most names of each kind to return.'),
  },
  QUERY,
);

/** Answer of `GET /v1/search`. */
export const searchAnswer = z
  .strictObject({
    data: z
      .array(
        z
          .strictObject({
            kind,
            id: z.string().meta({ description: 'The id of a session. A user has its name as its id.' }),
            name: z.string(),
          })
          .meta({ id: 'Named' }),
      )
      .meta({
        description:
          'Users first: those whose names begin with the text, then the others by name. Then sessions, newest first.',
      }),
    complete: z.boolean().meta({ description: 'false: there may be more names that have this part.' }),
  })
  .meta({ id: 'SearchAnswer' });
export type SearchAnswer = z.infer<typeof searchAnswer>;
