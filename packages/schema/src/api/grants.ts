import * as z from 'zod';
import { apiKeyId, externalId, sessionId } from '../fields/fields.ts';
import { QUERY } from '../fields/invalid-request.ts';
import { pageOf, pageQuery } from '../fields/page.ts';
import { grantAnswer } from './grant-change.ts';
import { GRANT_STATUSES } from './session.ts';

const STATUS = `expected one of ${GRANT_STATUSES.join(', ')}`;

/** Query of `GET /v1/grants`. A grant must fit all filters. */
export const grantsQuery = z.strictObject(
  {
    ...pageQuery.shape,
    external_session: externalId
      .optional()
      .meta({ description: 'Only those that were issued with this external_session.' }),
    external_user: externalId
      .optional()
      .meta({ description: 'Only those that were issued with this external_user.' }),
    session_id: sessionId.optional().meta({ description: 'Only those of this session.' }),
    api_key: apiKeyId.optional().meta({ description: 'Only those that this API key issued, by its id.' }),
    status: z.enum(GRANT_STATUSES, STATUS).meta({ id: 'GrantStatus' }).optional().meta({
      description:
        'Left out: all. A URL that has just used up a limit is found as `exhausted` once the ledger has its calls.',
    }),
  },
  QUERY,
);
export type GrantsQuery = z.output<typeof grantsQuery>;

/** Answer of `GET /v1/grants`. */
export const grantPage = pageOf(grantAnswer).meta({ id: 'GrantPage' });
