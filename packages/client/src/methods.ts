import type { Operations } from '../generated/operations.ts';
import type { operations } from '../generated/types.ts';
import type { Dollars } from './dollars.ts';
import type { IssuedUrl } from './sdk-clients.ts';

/** The client: a method for each operation. */
export type Presign = { readonly [Id in keyof Operations]: Method<Id> };

export type OperationId = keyof operations;

/** Options of every request. */
export type CallOptions = {
  /** Ends the request, and the wait for the next attempt. */
  readonly signal?: AbortSignal | undefined;
  /** As for the client, for this request alone. */
  readonly maxRetries?: number | undefined;
  /** As for the client, for this request alone. */
  readonly timeoutMs?: number | undefined;
};

/** Options of a request that issues. */
export type IssueOptions = CallOptions & {
  /** 1 to 255 visible ASCII characters. Left out: the client makes one, so that its own retries issue nothing twice. */
  readonly idempotencyKey?: string | undefined;
};

/** All fields of an operation: those of its path, query and body. */
export type Input<Id extends OperationId> = Flat<
  Fields<operations[Id]['parameters']['path']> &
    Fields<operations[Id]['parameters']['query']> &
    Fields<BodyOf<operations[Id]['requestBody']>> &
    InDollars<BodyOf<operations[Id]['requestBody']>>
>;

/** `cost_limit_usd` is in dollars, and is sent as `cost_limit` in microdollars. Give one of them. */
type InDollars<Body> = [Body] extends [{ cost_limit?: unknown }]
  ? 'cost_limit' extends keyof Body
    ? { cost_limit_usd?: Dollars }
    : unknown
  : unknown;

type Method<Id extends OperationId> = [CsvOf<Id>] extends [never]
  ? Call<Input<Id>, OptionsOf<Id>, JsonOf<Id>>
  : Call<Input<Id> & { format: 'csv' | 'ndjson' }, OptionsOf<Id>, CsvOf<Id>> &
      Call<Input<Id> & { format?: 'json' }, OptionsOf<Id>, JsonOf<Id>>;

type Call<Fields, Options, Answer> = object extends Fields
  ? (fields?: Fields, options?: Options) => Promise<Answer>
  : (fields: Fields, options?: Options) => Promise<Answer>;

/** Options of a request that changes something that has a revision. */
export type ChangeOptions = CallOptions & {
  /** The revision that the change is meant for. Left out: any. */
  readonly ifRevision?: number | undefined;
};

type OptionsOf<Id extends OperationId> = [HeaderOf<Id>] extends [never]
  ? CallOptions
  : 'If-Match' extends keyof HeaderOf<Id>
    ? ChangeOptions
    : IssueOptions;

type HeaderOf<Id extends OperationId> = NonNullable<operations[Id]['parameters']['header']>;

/** A part that an operation does not have has no fields. */
type Fields<Part> = [NonNullable<Part>] extends [never] ? unknown : NonNullable<Part>;

type BodyOf<Request> =
  NonNullable<Request> extends { content: { 'application/json': infer Body } } ? Body : never;

type AnswerOf<Id extends OperationId> = operations[Id]['responses'][keyof operations[Id]['responses']];

type JsonOf<Id extends OperationId> = Id extends 'presign' ? IssuedUrl : JsonIn<AnswerOf<Id>>;

/** The bodies of all statuses: a change may answer 204 or 202. */
type JsonIn<Answer> = Answer extends { content: { 'application/json': infer Body } } ? Body : undefined;

type CsvOf<Id extends OperationId> =
  AnswerOf<Id> extends { content: { 'text/csv': infer Body } } ? Body : never;

/** One object type. An optional field may also be undefined, and is then not sent. */
type Flat<Parts> = unknown extends Parts
  ? Record<string, never>
  : {
      [Name in keyof Parts]: object extends Pick<Parts, Name>
        ? Given<Parts[Name]> | undefined
        : Given<Parts[Name]>;
    };

/** The client only reads a list, so a list `as const` is accepted. */
type Given<Value> = Value extends readonly (infer Each)[] ? readonly Each[] : Value;
