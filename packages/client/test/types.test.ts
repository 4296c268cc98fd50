import { expectTypeOf, test } from 'vitest';
import type {
  ErrorCode,
  Input,
  Pending,
  Presign,
  PresignAnswer,
  UsageReport,
  VirtualKey,
} from '../src/index.ts';

type Fields<Id extends keyof Presign> = Parameters<Presign[Id]>[0];

test('types: a method takes the fields of its operation and returns its answer', () => {
  expectTypeOf<Presign['presign']>().returns.resolves.toExtend<PresignAnswer>();
  expectTypeOf<Presign['rotateVirtualKey']>().returns.resolves.toEqualTypeOf<VirtualKey | Pending>();
  expectTypeOf<Fields<'rotateVirtualKey'>>().toEqualTypeOf<{ id: string; key: string }>();
  expectTypeOf<Presign['revokeGrant']>().returns.resolves.toEqualTypeOf<Pending | undefined>();
});

test('types: a missing required field and an unknown field are errors', () => {
  expectTypeOf<{ provider: string }>().not.toExtend<Input<'presign'>>();
  expectTypeOf<{ provider: string; path: string[] }>().toExtend<Input<'presign'>>();
  expectTypeOf<Input<'presign'>>().not.toHaveProperty('model');
  expectTypeOf<{ path: number }>().not.toExtend<Pick<Input<'presign'>, 'path'>>();
});

test('types: an optional field accepts undefined, and a required one does not', () => {
  expectTypeOf<Input<'presign'>['external_user']>().toEqualTypeOf<string | null | undefined>();
  expectTypeOf<Input<'presign'>['provider']>().toEqualTypeOf<string>();
});

test('types: an operation without required fields needs no argument', () => {
  expectTypeOf<[]>().toExtend<Parameters<Presign['listSessions']>>();
  expectTypeOf<[]>().toExtend<Parameters<Presign['publicKeys']>>();
  expectTypeOf<[]>().not.toExtend<Parameters<Presign['getSession']>>();
});

test('types: only a POST takes an Idempotency-Key', () => {
  type Options<Id extends keyof Presign> = NonNullable<Parameters<Presign[Id]>[1]>;
  expectTypeOf<Options<'presign'>>().toHaveProperty('idempotencyKey');
  expectTypeOf<Options<'mcpPresign'>>().toHaveProperty('idempotencyKey');
  expectTypeOf<Options<'createApiKey'>>().toHaveProperty('idempotencyKey');
  expectTypeOf<Options<'listSessions'>>().not.toHaveProperty('idempotencyKey');
});

test('types: the CSV format returns text, and any other format returns a report', () => {
  expectTypeOf<Presign['getUsage']>().toBeCallableWith({ from: '1', format: 'csv' });
  const csv = (presign: Presign) => presign.getUsage({ from: '1', format: 'csv' });
  const report = (presign: Presign) => presign.getUsage({ from: '1', group_by: ['day'] });
  expectTypeOf(csv).returns.resolves.toEqualTypeOf<string>();
  expectTypeOf(report).returns.resolves.toEqualTypeOf<UsageReport>();
});

test('types: usage takes the parameters that the issuer takes: times in any form, and lists', () => {
  type Asked = Input<'getUsage'>;
  expectTypeOf<Asked['from']>().toEqualTypeOf<number | string | Date | undefined>();
  expectTypeOf<Asked['to']>().toEqualTypeOf<number | string | Date | undefined>();
  expectTypeOf<UsageReport['to']>().toExtend<Asked['from']>();
  const by = ['external_user', 'day'] as const;
  expectTypeOf<typeof by>().toExtend<Asked['group_by']>();
  expectTypeOf<['hour']>().not.toExtend<Asked['group_by']>();
});

test("types: the issuer's error codes are known, and unknown ones are allowed", () => {
  expectTypeOf<'rate_limited' | 'timed_out'>().toExtend<ErrorCode>();
  expectTypeOf<string>().toExtend<ErrorCode>();
});
