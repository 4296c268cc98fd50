import { errorBody, type Refusal } from '@presign/schema';

/** The `error` of an error event. `retry_after` stands for the header `Retry-After` of an answer: seconds, where the same event may pass later. */
export function errorOf(refusal: Refusal, requestId: string) {
  const { code, message, type, param } = errorBody(refusal, requestId).error;
  const { details, retryAfterSeconds } = refusal;
  const error = { code, message: `${code}: ${message}`, type, param, request_id: requestId };
  return { ...details, ...error, retry_after: retryAfterSeconds };
}
