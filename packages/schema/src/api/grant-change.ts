import * as z from 'zod';
import { jsonObject, METADATA_MAX_BYTES } from '../fields/fields.ts';
import { expected } from '../fields/invalid-request.ts';
import { changedFields } from '../fields/limits.ts';
import { LIMIT_NAMES } from '../limit-kinds.ts';
import { hasField } from './key-change.ts';
import { keyName } from './keys.ts';
import { sessionGrant, sessionMetadata, sessionSummary } from './session.ts';

const TIME = expected('a time in whole Unix seconds');
const SOME = `expected at least one of ${LIMIT_NAMES.join(', ')}, expires_at and metadata`;

/** Body of `PATCH /v1/grants/{id}`. Fields that are left out stay as they are. */
export const grantChange = z
  .strictObject(
    {
      ...changedFields,
      expires_at: z.int(TIME).min(0, TIME).max(253_402_300_799, TIME).optional().meta({
        description:
          'When it ends, in Unix seconds. A later end than its token has gives it a new URL; the old one ends when it says.',
      }),
      metadata: jsonObject(METADATA_MAX_BYTES)
        .nullable()
        .optional()
        .meta({ description: 'Replaces all metadata. null: none.' }),
    },
    expected('a JSON object'),
  )
  .refine((change) => Object.values(change).some((value) => value !== undefined), SOME)
  .meta({ id: 'GrantChange', minProperties: 1, examples: [{ cost_limit: 10_000_000, max_uses: 500 }] });
export type GrantChange = z.output<typeof grantChange>;

/** Answer of `GET /v1/grants/{id}`. */
export const grantAnswer = z
  .strictObject({
    ...sessionGrant.shape,
    session_id: z.guid(),
    session_name: z.string().nullable().meta({ description: 'The name of its session. null: it has none.' }),
  })
  .meta({ id: 'Grant' });
export type GrantAnswer = z.infer<typeof grantAnswer>;

const changedUrl = z.string().nullable().meta({
  description:
    'The URL that lasts until expires_at, if that is the end of its token. null: the URL stays, or another API key issued it and the one that asks has a policy.',
});

/** Answer of `PATCH /v1/grants/{id}`. The optional fields need the scope `read`. */
export const changedGrant = grantAnswer
  .partial()
  .required({ id: true, session_id: true, expires_at: true, revision: true })
  .extend({ url: changedUrl })
  .meta({ id: 'ChangedGrant' });
export type ChangedGrant = z.infer<typeof changedGrant>;

/** The live URLs that one request changes. */
export const SESSION_GRANTS_MAX = 100;

/** Body of `PATCH /v1/sessions/{id}`. Fields that are left out stay as they are. */
export const sessionChange = z
  .strictObject(
    {
      name: keyName.nullable().optional().meta({ description: 'Your name for it. null: none.' }),
      metadata: jsonObject(METADATA_MAX_BYTES)
        .nullable()
        .optional()
        .meta({ description: "Replaces all of the session's own metadata. null: none." }),
      grants: grantChange.optional().meta({
        description: `The change of each of its live URLs and bundles, at most ${SESSION_GRANTS_MAX}, as \`PATCH /v1/grants/{id}\` takes it. All of them are changed, or none. A limit is that of each URL, not of all together.`,
      }),
    },
    expected('a JSON object'),
  )
  .refine(hasField, 'expected at least one of name, metadata and grants')
  .meta({
    id: 'SessionChange',
    minProperties: 1,
    examples: [{ name: 'chat of user 42', grants: { max_uses: 500 } }],
  });
export type SessionChange = z.output<typeof sessionChange>;

/** Answer of `PATCH /v1/sessions/{id}`. The optional fields need the scope `read`. */
export const changedSession = z
  .strictObject({ ...sessionSummary.shape, metadata: sessionMetadata })
  .partial()
  .required({ id: true, revision: true })
  .extend({
    changed: z
      .array(z.strictObject({ id: z.guid(), url: changedUrl }).meta({ id: 'ChangedUrl' }))
      .meta({ description: 'The live URLs and bundles that `grants` was for.' }),
  })
  .meta({ id: 'ChangedSession' });
export type ChangedSession = z.infer<typeof changedSession>;
