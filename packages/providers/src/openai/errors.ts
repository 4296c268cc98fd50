import type { ErrorShape } from '../dialect.ts';

/**
 * OpenAI's form. Vendors that follow its API read it, too. It has no `detail`, because the SDKs of such a vendor may expect another type
 * there.
 */
export const openaiErrors: ErrorShape = ({ code, message, type, param, requestId, details }) => ({
  error: { code, message, type, param, request_id: requestId, ...details },
});
