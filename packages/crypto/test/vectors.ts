import { existsSync, readFileSync } from 'node:fs';

/** The official PASETO and PASERK vectors are not in the repository. They are searched for next to it. */
const FOLDER = new URL('../../../../shared/vectors/', import.meta.url);

export const vectorsPresent = existsSync(FOLDER);

export type Vector = {
  readonly name: string;
  readonly 'expect-fail': boolean;
  readonly [field: string]: unknown;
};

/** The cases of one file; none when the folder is absent, so that suites can be declared and then skipped. */
export function readVectors(file: string): Vector[] {
  if (!vectorsPresent) return [];
  return (JSON.parse(readFileSync(new URL(file, FOLDER), 'utf8')) as { tests: Vector[] }).tests;
}

export function hex(vector: Vector, field: string): Buffer {
  return Buffer.from(text(vector, field), 'hex');
}

export function text(vector: Vector, field: string): string {
  const value = vector[field];
  if (typeof value !== 'string') throw new Error(`${vector.name} has no text in ${field}`);
  return value;
}
