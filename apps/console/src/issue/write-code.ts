import { ISSUER } from '../api/api.ts';

/** A secret in code: the name of a variable of the environment. */
export class Variable {
  readonly name: string;
  constructor(field: string) {
    this.name = field.toUpperCase().replace(/\W+/g, '_').replace(/_$/, '');
  }
}

/** The call of an operation: its path, its method in the client library, and its body. Secrets in the body are `Variable`s. */
export type ShownRequest = {
  readonly path: string;
  readonly method: 'presign' | 'mcpPresign';
  readonly body: Readonly<Record<string, unknown>>;
};

/** The same request as JSON and in three languages. No code has a secret in it: each reads them from the environment. */
export const codeOf = (request: ShownRequest): readonly (readonly [language: string, code: string])[] => [
  ['curl', curl(request)],
  ['TypeScript', typescript(request)],
  ['Python', python(request)],
  ['JSON', json(request)],
];

/** How a language writes values. */
type Language = {
  readonly text: (value: string) => string;
  readonly key: (name: string) => string;
  readonly constant: (value: boolean | null) => string;
  readonly variable: (name: string) => string;
};

const text = (value: string): string => JSON.stringify(value);

/** In single quotes, which are closed around a variable. */
const inShell = (value: string): string => text(value).replaceAll("'", "'\\''");
const SHELL: Language = {
  text: inShell,
  key: inShell,
  constant: String,
  variable: (name) => `"'"$${name}"'"`,
};

const TYPESCRIPT: Language = {
  text,
  // A plain `__proto__` would set the prototype.
  key: (name) =>
    name === '__proto__' ? '["__proto__"]' : /^[A-Za-z_$][\w$]*$/.test(name) ? name : text(name),
  constant: String,
  variable: (name) => `process.env.${name} ?? ''`,
};

const PYTHON: Language = {
  text,
  key: text,
  constant: (value) => (value === null ? 'None' : value ? 'True' : 'False'),
  variable: (name) => `os.environ["${name}"]`,
};

function write(language: Language, value: unknown, indent = ''): string {
  if (typeof value === 'string') return language.text(value);
  if (typeof value === 'boolean' || value === null) return language.constant(value);
  if (value instanceof Variable) return language.variable(value.name);
  if (typeof value !== 'object') return String(value);
  const inside = `${indent}  `;
  const parts = Array.isArray(value)
    ? value.map((each) => write(language, each, inside))
    : Object.entries(value).map(([name, each]) => `${language.key(name)}: ${write(language, each, inside)}`);
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  return parts.length === 0
    ? `${open}${close}`
    : `${open}\n${inside}${parts.join(`,\n${inside}`)}\n${indent}${close}`;
}

/** Variables are written as `$NAME`, for the reader to replace. */
const json = ({ body }: ShownRequest): string =>
  write({ ...PYTHON, constant: String, variable: (name) => text(`$${name}`) }, body);

const curl = ({ path, body }: ShownRequest): string => `curl -s '${ISSUER}${path}' \\
  -H "Authorization: Bearer $PRESIGN_API_KEY" \\
  -H 'Content-Type: application/json' \\
  -d '${write(SHELL, body)}'`;

const typescript = ({
  method,
  body,
}: ShownRequest): string => `import { createPresign } from '@presign/client';

const presign = createPresign({
  url: ${text(ISSUER)},
  apiKey: process.env.PRESIGN_API_KEY ?? '',
});
const issued = await presign.${method}(${write(TYPESCRIPT, body)});
console.log(issued.${ANSWER[method]});`;

const python = ({ path, method, body }: ShownRequest): string => `import json
import os
from urllib.request import Request, urlopen

request = Request(
    ${text(ISSUER + path)},
    data=json.dumps(${write(PYTHON, body, '    ')}).encode(),
    headers={
        "Authorization": f"Bearer {os.environ['PRESIGN_API_KEY']}",
        "Content-Type": "application/json",
    },
)
issued = json.load(urlopen(request))
print(issued["${ANSWER[method]}"])`;

/** The field of the answer that has the URL. */
const ANSWER = { presign: 'url', mcpPresign: 'bundle_url' } as const;
