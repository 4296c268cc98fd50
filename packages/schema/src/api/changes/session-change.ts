import { z } from 'zod';
import { jsonObject, METADATA_MAX_BYTES } from '../fields.ts';
import { expected } from '../invalid-request.ts';
import { keyName } from '../keys.ts';
import { sessionMetadata, sessionSummary } from '../session.ts';
import { hasField } from './key-change.ts';

/** Body of `PATCH /v1/sessions/{id}`. Fields that are left out stay as they are. */
export const sessionChange = z
  .strictObject(
    {
      name: keyName.nullable().optional().meta({ description: 'Your name for it. null: none.' }),
      metadata: jsonObject(METADATA_MAX_BYTES)
        .nullable()
        .optional()
        .meta({ description: "Replaces all of the session's own metadata. null: none." }),
    },
    expected('a JSON object'),
  )
  .refine(hasField, 'expected at least one of name and metadata')
  .meta({ id: 'SessionChange', minProperties: 1, examples: [{ name: 'chat of user 42' }] });
export type SessionChange = z.output<typeof sessionChange>;

/** Answer of `PATCH /v1/sessions/{id}`. */
export const changedSession = z
  .strictObject({ ...sessionSummary.shape, metadata: sessionMetadata })
  .meta({ id: 'ChangedSession' });
export type ChangedSession = z.infer<typeof changedSession>;
