import type { ErrorShape, PlainError } from '../dialect.ts';

/**
 * Google's form: https://google.aip.dev/193, "HTTP/1.1+JSON representation". Google's SDKs expect a number as the code.
 * Values in `metadata` are strings, and a `reason` is in upper case.
 */
export const geminiErrors: ErrorShape = (error) => ({
  error: {
    code: error.status,
    message: error.message,
    status: STATUSES.get(error.status) ?? 'UNKNOWN',
    details: [
      {
        '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
        reason: error.code.toUpperCase(),
        domain: 'presign',
        metadata: metadataOf(error),
      },
    ],
  },
});

function metadataOf({ code, param, requestId, details }: PlainError): Record<string, string> {
  const values = Object.entries({ code, param, request_id: requestId, ...details });
  const known = values.filter(([, value]) => value !== null);
  return Object.fromEntries(
    known.map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]),
  );
}

/** The names of google/rpc/code.proto. It has no name for 402, 413, 415 and 422. */
const STATUSES: ReadonlyMap<number, string> = new Map([
  [400, 'INVALID_ARGUMENT'],
  [401, 'UNAUTHENTICATED'],
  [402, 'RESOURCE_EXHAUSTED'],
  [403, 'PERMISSION_DENIED'],
  [404, 'NOT_FOUND'],
  [413, 'INVALID_ARGUMENT'],
  [415, 'INVALID_ARGUMENT'],
  [422, 'FAILED_PRECONDITION'],
  [429, 'RESOURCE_EXHAUSTED'],
  [500, 'INTERNAL'],
  [502, 'UNAVAILABLE'],
  [503, 'UNAVAILABLE'],
  [504, 'DEADLINE_EXCEEDED'],
]);
