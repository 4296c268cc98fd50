import type { ErrorShape } from '../dialect.ts';

/** Cohere's form: a `message` at the top (`cohere-ai` 8.1, errors/). Its SDKs put the whole body into their own message. */
export const cohereErrors: ErrorShape = ({ code, message, param, requestId, details }) => ({
  message,
  code,
  request_id: requestId,
  ...(param === null ? {} : { param }),
  ...details,
});
