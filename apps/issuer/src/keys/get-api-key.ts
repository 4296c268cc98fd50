import { apiKeyAnswer, RefusedError } from '@presign/schema';
import { apiKeys } from '@presign/schema/tables';
import { and, eq } from 'drizzle-orm';
import { z } from 'zod';
import { inTime } from '../in-time.ts';
import { route } from '../route.ts';
import { tellApiKey } from './tell-api-key.ts';

/** `GET /v1/api-keys/{id}`. */
export const getApiKey = route(
  {
    method: 'get',
    path: '/v1/api-keys/{id}',
    summary: 'An API key, without the key itself',
    scope: 'admin',
    params: z.object({ id: z.guid() }),
    answer: apiKeyAnswer,
    errors: ['not_found'],
  },
  ({ db }) =>
    async ({ apiKey, params }) => {
      const own = and(eq(apiKeys.accountId, apiKey.accountId), eq(apiKeys.id, params.id));
      const [row] = await inTime(db.select().from(apiKeys).where(own));
      if (!row) throw new RefusedError({ code: 'not_found' });
      return tellApiKey(row);
    },
);
