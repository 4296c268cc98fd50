import { virtualKeyAnswer, virtualKeyParams } from '@presign/schema';
import { inTime } from '../in-time.ts';
import { route } from '../route.ts';
import { readVirtualKey, tellVirtualKey } from './tell-virtual-key.ts';

/** `GET /v1/virtual-keys/{id}`. */
export const getVirtualKey = route(
  {
    method: 'get',
    path: '/v1/virtual-keys/{id}',
    summary: 'A virtual key, with what of its budget is used and spent',
    scope: 'read',
    params: virtualKeyParams,
    answer: virtualKeyAnswer,
    errors: ['not_found'],
  },
  ({ db, redis }) =>
    async ({ apiKey, params }) =>
      tellVirtualKey(redis, await inTime(readVirtualKey(db, apiKey.accountId, params.id))),
);
