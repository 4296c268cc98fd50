import { describeApi, type OpenApi, ROUTES } from '@presign/issuer';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { fullFormats } from 'ajv-formats/dist/formats.js';

/** An answer of the issuer as it came. */
export type Answered = {
  readonly method: string;
  /** With its query or without. */
  readonly path: string;
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
};

export const api: OpenApi = describeApi(ROUTES, 'http://issuer.example');

const ajv = new Ajv2020({ strict: true, allErrors: true, formats: fullFormats, validateFormats: true });
ajv.addSchema(compilable({ $id: 'api', $defs: api.components.schemas }));
const compiled = new Map<object, ValidateFunction>();

/** Judges a value by a schema of the document; says what is wrong with it. */
export function faultOf(schema: object, value: unknown): string | undefined {
  let validate = compiled.get(schema);
  if (!validate) {
    validate = ajv.compile(compilable(schema));
    compiled.set(schema, validate);
  }
  return validate(value) ? undefined : ajv.errorsText(validate.errors);
}

/** With references that lead to the schema that all named ones stand in. */
function compilable(schema: object): object {
  return JSON.parse(JSON.stringify(schema).replaceAll('"#/components/schemas/', '"api#/$defs/')) as object;
}

/** The part of an answer that the document lacks; undefined when it has every part. */
export function undocumented({ method, path, status, headers, text }: Answered): string | undefined {
  if (method === 'HEAD' || NO_PART_OF_THE_API.test(path)) return undefined;
  const route = routeOf(method, path);
  // Other paths have no route. A caller without a valid key gets 401 there, not 404.
  if (!route) return [401, 404, 405, 413].includes(status) ? judge(ERROR, text) : `${status} from no route`;
  const response = route.responses[String(status)];
  if (!response) return `${status} is not documented`;
  const own = '$ref' in response ? api.components.responses[nameIn(response.$ref)] : response;
  const type = headers.get('content-type')?.split(';')[0];
  if (!own?.content) return text === '' ? undefined : 'a body is not documented';
  const content = own.content[type ?? ''];
  if (!content) return `${type} is not documented`;
  const missing = Object.keys(own.headers).filter((name) => name === 'x-request-id' && !headers.has(name));
  if (missing.length > 0) return `lacks ${missing.join()}`;
  if (type !== 'application/json') return faultOf(content.schema, text);
  const fault = judge(content.schema, text);
  const codes: readonly string[] | undefined = own['x-codes'];
  if (fault !== undefined || codes === undefined) return fault;
  const { code } = (JSON.parse(text) as { error: { code: string } }).error;
  return codes.includes(code) ? undefined : `${code} is not documented`;
}

/** For who runs the service, and for readers of the documentation. */
const NO_PART_OF_THE_API = /^\/(healthz|readyz|openapi\.json|docs(\/.*)?|llms(-full)?\.txt)$/;

const ERROR = { $ref: '#/components/schemas/Error' };

const judge = (schema: object, text: string) => faultOf(schema, JSON.parse(text));

const nameIn = (ref: string) => ref.split('/').at(-1) ?? '';

/** The operation that a request is for. */
function routeOf(method: string, path: string) {
  const asked = path.split('?')[0] ?? '';
  const found = Object.entries(api.paths).find(([template, methods]) => {
    const form = template.replaceAll(/[.]/g, '\\.').replaceAll(/\{\w+\}/g, '[^/]+');
    return method.toLowerCase() in methods && new RegExp(`^${form}$`).test(asked);
  });
  return found?.[1][method.toLowerCase()];
}
