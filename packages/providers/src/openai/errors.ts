import type { ErrorShape } from '../dialect.ts';

/**
 * OpenAI's form. Vendors that follow its API read it, too. It has no `detail`: Mistral's SDKs expect a list there in a 422
 * (`@mistralai/mistralai`, models/errors/httpvalidationerror).
 */
export const openaiErrors: ErrorShape = ({ code, message, type, param, requestId, details }) => ({
  error: { code, message, type, param, request_id: requestId, ...details },
});

/**
 * Mistral's form, which has the fields at the top (`@ai-sdk/mistral` 3.0.69, mistralErrorDataSchema), and OpenAI's form for
 * OpenAI's SDKs.
 */
export const mistralErrors: ErrorShape = (error) => {
  const { code, message, type, param } = error;
  return { object: 'error', message, type, param, code, ...openaiErrors(error) };
};
