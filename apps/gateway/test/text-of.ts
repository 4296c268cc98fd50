import { type Body, inOnePiece, isInMemory } from '../src/http/body.ts';

/** The text of a body that is in memory. */
export const textOf = (body: Body): string => (isInMemory(body) ? String(inOnePiece(body)) : '');
