const requestIds = new WeakMap<object, string>();

/** The id under which the issuer's log has the request of this answer. Undefined for any other value, and for a copy. */
export function requestIdOf(answer: object): string | undefined {
  return requestIds.get(answer);
}

/** Returns the answer. Its shape stays that of the API, so the id is kept apart. */
export function keepRequestId(answer: unknown, requestId: string | undefined): unknown {
  if (typeof answer === 'object' && answer !== null && requestId !== undefined)
    requestIds.set(answer, requestId);
  return answer;
}
