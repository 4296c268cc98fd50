import type { z } from 'zod';
import { SANDBOX_MODELS } from './reply.ts';

export type SandboxEvent = { event?: string; data: object | '[DONE]' };

/** What an endpoint of the sandbox makes of a request's body: an answer, a stream, or why not. */
export type SandboxAnswer = { json: object } | { events: SandboxEvent[] } | SandboxRefusal;

export type SandboxRefusal = {
  refused: 'unauthenticated' | 'invalid' | 'unknown_model' | 'unknown_path';
  message: string;
  param?: string;
};

/** Makes an endpoint of a body's schema and of what answers it; `id` is another one for every call. */
export function endpoint<Body extends { model: string }>(
  schema: z.ZodType<Body>,
  answer: (body: Body, id: string) => SandboxAnswer,
): (body: unknown, id: string) => SandboxAnswer {
  return (input, id) => {
    const parsed = schema.safeParse(input);
    if (!parsed.success) return invalid(parsed.error);
    const { model } = parsed.data;
    if (SANDBOX_MODELS.some((known) => known === model)) return answer(parsed.data, id);
    const message = `The model '${model}' does not exist: the sandbox has ${SANDBOX_MODELS.join(' and ')}`;
    return { refused: 'unknown_model', message, param: 'model' };
  };
}

function invalid(error: z.ZodError): SandboxRefusal {
  const [issue] = error.issues;
  const param = issue?.path.join('.') || 'body';
  return { refused: 'invalid', message: `${param}: ${issue?.message ?? 'invalid'}`, param };
}
