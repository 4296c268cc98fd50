/** An OpenAPI document, as far as it matters here. */
export type Api = {
  readonly openapi: string;
  readonly info: object;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
};

export type Operation = {
  readonly operationId: string;
  readonly summary: string;
  readonly parameters?: readonly { readonly name: string; readonly in: string }[];
  readonly requestBody?: { readonly content: { readonly 'application/json': { readonly schema: Schema } } };
  readonly responses: Readonly<Record<string, { readonly headers?: object }>>;
};

export type Schema = {
  readonly $ref?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
};

/** A path may have these in addition to its operations. */
export const OF_A_PATH: ReadonlySet<string> = new Set(['summary', 'description', 'parameters', 'servers']);
