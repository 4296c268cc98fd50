import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

/** Versions of the Go modules whose files have the schemas. */
export const KUBERNETES = '1.34.2';
const PROMETHEUS_OPERATOR = '0.85.0';
const GATEWAY_API = '1.4.1';

type Schema = { readonly [key: string]: unknown };
type Kind = { readonly group: string; readonly version: string; readonly kind: string };

/**
 * Writes the schemas of Kubernetes' own kinds, of ServiceMonitor and of HTTPRoute into a folder, as kubeconform reads them: one file a
 * kind. A field that a schema does not name is an error.
 * @returns where kubeconform finds the schema of a kind
 */
export function writeSchemas(folder: string): string {
  mkdirSync(folder, { recursive: true });
  const module = moduleOf(`k8s.io/kubernetes@v${KUBERNETES}`);
  const { definitions } = readJson(join(module, 'api/openapi-spec/swagger.json')) as {
    definitions: Record<string, Schema>;
  };
  for (const [name, schema] of Object.entries(definitions)) {
    const kinds = (schema['x-kubernetes-group-version-kind'] ?? []) as readonly Kind[];
    const [kind, ...others] = kinds;
    if (kind && others.length === 0) write(folder, kind, standalone(name, definitions));
  }
  const operator = moduleOf(`github.com/prometheus-operator/prometheus-operator@v${PROMETHEUS_OPERATOR}`);
  const gateways = moduleOf(`sigs.k8s.io/gateway-api@v${GATEWAY_API}`);
  for (const file of [
    join(operator, 'jsonnet/prometheus-operator/servicemonitors-crd.json'),
    join(gateways, 'config/crd/standard/gateway.networking.k8s.io_httproutes.yaml'),
  ])
    writeCustom(folder, parse(readFileSync(file, 'utf8')) as CustomResource);
  return join(folder, '{{.ResourceKind}}{{.KindSuffix}}.json');
}

type CustomResource = {
  readonly spec: {
    readonly group: string;
    readonly names: { readonly kind: string };
    readonly versions: readonly {
      readonly name: string;
      readonly schema: { readonly openAPIV3Schema: Schema };
    }[];
  };
};

function writeCustom(folder: string, { spec: { group, names, versions } }: CustomResource): void {
  for (const { name, schema } of versions)
    write(folder, { group, version: name, kind: names.kind }, strict(schema.openAPIV3Schema));
}

/** The folder of a Go module, which Go keeps after the first download. */
function moduleOf(name: string): string {
  const output = execFileSync('go', ['mod', 'download', '-json', name], { encoding: 'utf8' });
  return (JSON.parse(output) as { Dir: string }).Dir;
}

const readJson = (file: string): unknown => JSON.parse(readFileSync(file, 'utf8'));

function write(folder: string, { group, version, kind }: Kind, schema: unknown): void {
  const [first = ''] = group.split('.');
  const name = [kind, ...(first === '' ? [] : [first]), version].join('-').toLowerCase();
  writeFileSync(join(folder, `${name}.json`), JSON.stringify(schema));
}

/** A definition with all that it refers to. */
function standalone(name: string, all: Readonly<Record<string, Schema>>): unknown {
  const needed: Record<string, unknown> = {};
  const add = (each: string) => {
    if (each in needed) return;
    needed[each] = strict(all[each] ?? {});
    for (const [, other = ''] of JSON.stringify(all[each]).matchAll(/"#\/definitions\/([^"]+)"/g)) add(other);
  };
  add(name);
  return { $ref: `#/definitions/${name}`, definitions: needed };
}

/** Refuses unnamed fields. A number or a text is of either type. The metadata of a custom resource has no schema of its own. */
function strict(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(strict);
  if (typeof schema !== 'object' || schema === null) return schema;
  const fields = Object.entries(schema).map(([key, value]) => [key, strict(value)] as const);
  const each: Record<string, unknown> = Object.fromEntries(fields);
  if (each['format'] === 'int-or-string' || each['x-kubernetes-int-or-string'] === true)
    return { type: ['string', 'integer'] };
  const isClosed = each['type'] === 'object' && typeof each['properties'] === 'object';
  return isClosed && !('additionalProperties' in each) ? { ...each, additionalProperties: false } : each;
}
