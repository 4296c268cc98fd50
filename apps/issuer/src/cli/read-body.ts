import { invalidRequest } from '@presign/schema';
import type { z } from 'zod';
import { CommandError, type Given, type Io, UsageError } from './command.ts';

/**
 * Judges what was given as the API judges a body.
 * @throws UsageError that names the first wrong field
 */
export function readBody<S extends z.ZodType>(schema: S, body: object): z.output<S> {
  const read = schema.safeParse(body);
  if (read.success) return read.data;
  throw new UsageError(invalidRequest(read.error).message ?? 'not understood');
}

/** A whole number; what is none is judged with the rest of the body. */
export function numberOf(given: Given, name: string): number | string | undefined {
  const text = given.text(name);
  return text !== undefined && /^-?\d{1,16}$/.test(text) ? Number(text) : text;
}

/**
 * A secret from standard input, so that it stands neither in the shell's history nor in the list of processes.
 * @throws CommandError when there is none
 */
export async function readSecret(io: Io): Promise<string> {
  const secret = (await io.input()).trim();
  if (secret === '') throw new CommandError("standard input is empty: the provider's key is read from there");
  return secret;
}
