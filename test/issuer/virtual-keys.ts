import type { VirtualKeyAnswer } from '@presign/schema';
import { expect } from 'vitest';
import type { Stack } from '../harness/stack.ts';
import { type Sent, send } from './ask.ts';

/** A request to a route under `/v1/virtual-keys`, by the stack's own admin key unless said. */
export const askVirtualKeys = (
  stack: Pick<Stack, 'issuerUrl' | 'apiKey'>,
  method: string,
  path = '',
  body?: object,
  apiKey = stack.apiKey,
): Promise<Sent> =>
  send(stack, { method, path: `/v1/virtual-keys${path}`, apiKey, ...(body ? { body } : {}) });

/** The least a virtual key needs, with these fields over it. */
export const virtualKey = (fields: object = {}) => ({
  provider: 'openai',
  name: 'production',
  key: 'sk-first',
  ...fields,
});

/** Creates a virtual key; must succeed. */
export async function createVirtualKey(stack: Stack, fields: object = {}): Promise<VirtualKeyAnswer> {
  const sent = await askVirtualKeys(stack, 'POST', '', virtualKey(fields));
  expect(sent.status, sent.text).toBe(201);
  return JSON.parse(sent.text) as VirtualKeyAnswer;
}

/** Reads one; must succeed. */
export async function getVirtualKey(
  stack: Pick<Stack, 'issuerUrl' | 'apiKey'>,
  id: string,
): Promise<VirtualKeyAnswer> {
  const sent = await askVirtualKeys(stack, 'GET', `/${id}`);
  expect(sent.status, sent.text).toBe(200);
  return JSON.parse(sent.text) as VirtualKeyAnswer;
}
