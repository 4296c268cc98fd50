import { applyConfig, checkCallPath, dialectOf, doubledVersionPrefix } from '@presign/providers';
import type { Refusal } from '@presign/schema';
import type { LlmGrant } from '../grant/llm-grant.ts';

/** Where a call goes: the path that was checked is byte for byte the path that is sent. */
export type Target = { readonly path: string; readonly query: string };

/** Judges a call's method and path by the token alone, before any store is asked. */
export function match(
  grant: LlmGrant,
  method: string,
  rawPath: string,
  query: string,
): { target: Target } | { refusal: Refusal } {
  if (method !== grant.method) {
    const message = `This URL allows ${grant.method}, not ${method}.`;
    return { refusal: { code: 'method_not_allowed', message, details: { allowed: [grant.method] } } };
  }
  const odd = checkCallPath(rawPath);
  if (odd !== undefined) return { refusal: { code: 'path_not_allowed', message: `The path ${odd}.` } };
  const path = withModel(grant, rawPath);
  // A model may be named so that its path is none; what the issuer let pass is judged again as it will be sent.
  const sendable = path === rawPath || checkCallPath(path) === undefined;
  return sendable && grant.matches(path)
    ? { target: { path, query } }
    : { refusal: pathRefusal(grant, rawPath) };
}

function withModel({ model, provider }: LlmGrant, path: string): string {
  if (model === undefined) return path;
  return applyConfig(dialectOf(provider, path), { model }, { path, body: {} }).path;
}

function pathRefusal(grant: LlmGrant, path: string): Refusal {
  const allowed = grant.paths.join(', ');
  const doubled = doubledVersionPrefix(path, grant.paths)
    ? " The version prefix is doubled: cut it from the SDK's base URL."
    : '';
  return {
    code: 'path_not_allowed',
    message: `This URL allows ${allowed}, not ${path}.${doubled}`,
    details: { allowed: grant.paths },
  };
}
