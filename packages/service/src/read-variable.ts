import { readFileSync } from 'node:fs';
import { SECRETS, VARIABLES, type VariableName, type VariableValue } from './variables.ts';

/** A missing or malformed variable: one line that names it and shows an example, never its value. */
export class VariableError extends Error {
  /** @param problem the rest of a sentence that begins with the name */
  constructor(name: VariableName, problem: string) {
    const { meaning, example } = VARIABLES[name];
    super(`${name} ${problem}: ${meaning}, for example ${name}=${example}`);
    this.name = 'VariableError';
  }
}

/**
 * Reads one variable from an environment, a secret also from its file.
 * @throws VariableError when it is malformed, or missing (or empty) and no default is given.
 */
export function readVariable<N extends VariableName>(environment: Environment, name: N): VariableValue<N>;
export function readVariable<N extends VariableName, D extends VariableValue<N> | undefined>(
  environment: Environment,
  name: N,
  fallback: D,
): VariableValue<N> | D;
export function readVariable(environment: Environment, name: VariableName, ...fallback: unknown[]): unknown {
  const text = textOf(environment, name);
  if (text === undefined || text === '') {
    if (fallback.length > 0) return fallback[0];
    throw new VariableError(name, 'is missing');
  }
  const read = VARIABLES[name].schema.safeParse(text);
  if (!read.success) throw new VariableError(name, 'is malformed');
  return read.data;
}

function textOf(environment: Environment, name: VariableName): string | undefined {
  const text = environment[name];
  const file = SECRETS.has(name) ? environment[`${name}_FILE`] : undefined;
  if (file === undefined || file === '') return text;
  if (text !== undefined && text !== '') throw new VariableError(name, `and ${name}_FILE are both set`);
  return readNamedFile(name, file).replace(/\r?\n$/, '');
}

/** Reads a file that a variable names. @throws VariableError, which does not quote the path */
export function readNamedFile(name: VariableName, path: string): string {
  const problem = (error: Error) => `cannot be read (${'code' in error ? error.code : error.name})`;
  return parseVariable(name, () => readFileSync(path, 'utf8'), problem);
}

/**
 * Reads a variable's text with a given function, and names the variable when that fails.
 * @param problem turns the error into a message. By default the error's own message, which must not quote the text
 * @throws VariableError when the reader throws
 */
export function parseVariable<T>(
  name: VariableName,
  parse: () => T,
  problem: (error: Error) => string = (error) => `is malformed (${error.message})`,
): T {
  try {
    return parse();
  } catch (error) {
    throw new VariableError(name, problem(error instanceof Error ? error : new Error('unreadable')));
  }
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** For `problem` where the error's own message may quote the text. */
export const MALFORMED = (): string => 'is malformed';

/** Reads how long a service waits for Redis. */
export const readRedisTimeouts = (env: Environment) => ({
  connectMs: readVariable(env, 'REDIS_CONNECT_TIMEOUT_SECONDS', 5) * 1_000,
  commandMs: readVariable(env, 'REDIS_COMMAND_TIMEOUT_SECONDS', 5) * 1_000,
});

/** Reads the proxy for https upstreams. Undefined: there is none. */
export function readProxy(env: Environment) {
  const url = readVariable(env, 'HTTPS_PROXY', undefined);
  return url === undefined ? undefined : { url, noProxy: readVariable(env, 'NO_PROXY', undefined) };
}

/**
 * Reads where the operator's list of model prices is, and how often services read it again.
 * @throws VariableError when both a file and a URL are set
 */
export const readPriceSchedule = (env: Environment) =>
  listSchedule('PRICES', {
    path: readVariable(env, 'PRICES_FILE', undefined),
    url: readVariable(env, 'PRICES_URL', undefined),
    seconds: readVariable(env, 'PRICES_REFRESH_SECONDS', 900),
  });

/**
 * Reads where the operator's knowledge file is, likewise.
 * @throws VariableError when both a file and a URL are set
 */
export const readKnowledgeSchedule = (env: Environment) =>
  listSchedule('KNOWLEDGE', {
    path: readVariable(env, 'KNOWLEDGE_FILE', undefined),
    url: readVariable(env, 'KNOWLEDGE_URL', undefined),
    seconds: readVariable(env, 'KNOWLEDGE_REFRESH_SECONDS', 900),
  });

function listSchedule(
  list: 'PRICES' | 'KNOWLEDGE',
  { path, url, seconds }: { path: string | undefined; url: string | undefined; seconds: number },
) {
  if (path !== undefined && url !== undefined)
    throw new VariableError(`${list}_URL`, `cannot be set together with ${list}_FILE`);
  const file = path === undefined ? undefined : ({ is: 'file', path } as const);
  return { source: url === undefined ? file : ({ is: 'url', url } as const), everyMs: seconds * 1_000 };
}
