import type { z } from 'zod';
import type { Refusal } from '../errors.ts';
import { NOT_KNOWN } from './unknown-field.ts';

/**
 * Turns what Zod found into one refusal that names a wrong field as the caller wrote it: the first that is not known,
 * which says why another one is missing, or else the first.
 */
export function invalidRequest(error: z.ZodError): Refusal {
  const issue = error.issues.find(({ code }) => code === 'unrecognized_keys') ?? error.issues[0];
  if (issue === undefined) return { code: 'invalid_request' };
  if (issue.code === 'unrecognized_keys') {
    // A name as long as a body would make an answer as long.
    const param = fieldName([...issue.path, (issue.keys[0] || '""').slice(0, FIELD_NAME_MAX)]);
    // Zod's own words would be as long, too.
    const problem = issue.message.startsWith(NOT_KNOWN) ? issue.message : NOT_KNOWN;
    return { code: 'invalid_request', param, message: `${param}: ${problem}.` };
  }
  const param = fieldName(issue.path);
  const missing =
    issue.code === 'invalid_type' && issue.input === undefined && issue.message.includes('undefined');
  const message = missing ? 'this field is required.' : `${issue.message}.`;
  return param === ''
    ? { code: 'invalid_request', message: `The body: ${message}` }
    : { code: 'invalid_request', param, message: `${param}: ${message}` };
}

const FIELD_NAME_MAX = 128;

/** `['servers', 0, 'auth_config']` → `servers[0].auth_config`. */
function fieldName(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (name, step) =>
      typeof step === 'number' ? `${name}[${step}]` : name === '' ? String(step) : `${name}.${String(step)}`,
    '',
  );
}
