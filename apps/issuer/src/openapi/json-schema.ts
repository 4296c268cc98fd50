import * as z from 'zod';

/** A schema as OpenAPI 3.1 uses it: JSON Schema 2020-12. */
export type JsonSchema = z.core.JSONSchema.JSONSchema;

/**
 * Converts a Zod schema to JSON Schema. A schema whose metadata has an `id` goes into `$defs` under that name, and is
 * referred to. If the metadata has `shownAs`, that schema is converted instead of the parsing schema.
 * @param io the side of a schema that transforms: `input` for requests, `output` for answers
 */
export function toJsonSchema(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
  const { $schema, $defs, ...own } = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      show(zodSchema, jsonSchema, io);
      dropTruisms(jsonSchema, io);
      dropInherited(jsonSchema);
    },
  });
  const id = z.globalRegistry.get(schema)?.id;
  if (id === undefined || own.$ref !== undefined) return $defs ? { ...own, $defs } : own;
  return { $ref: `#/$defs/${id}`, $defs: { ...$defs, [id]: own } };
}

/** Replaces a converted schema by its `shownAs`, and keeps its own description, default and examples. */
function show(schema: z.core.$ZodType, json: JsonSchema, io: 'input' | 'output'): void {
  const { shownAs, id: _id, ...metadata } = z.globalRegistry.get(schema) ?? {};
  delete json.shownAs;
  if (shownAs instanceof z.ZodType) {
    for (const key of Object.keys(json)) delete json[key];
    Object.assign(json, toJsonSchema(shownAs, io), metadata);
  }
  // Zod treats these as the output of a transform, and omits them from the input.
  for (const key of ['default', 'examples']) if (key in metadata) json[key] = metadata[key];
}

/** A copy of a named schema inherits the rules in its metadata, and the named schema already states them. */
function dropInherited(json: JsonSchema): void {
  if (json.$ref === undefined) return;
  for (const key of Object.keys(json)) if (!BESIDE_REF.has(key)) delete json[key];
}
const BESIDE_REF = new Set(['$ref', '$defs', 'description', 'default', 'examples']);

/** Drops rules that apply to every JSON object, every whole number of this API, or every value of a format. */
function dropTruisms(json: JsonSchema, io: 'input' | 'output'): void {
  if (JSON.stringify(json.propertyNames) === '{"type":"string"}') delete json.propertyNames;
  // JSON Schema has no formats for blocks of addresses. Their patterns say the same.
  if (json.format?.startsWith('cidr')) delete json.format;
  // Any text can be a password, so its pattern says more.
  if (json.format !== undefined && json.format !== 'password') delete json.pattern;
  if (json.minimum === Number.MIN_SAFE_INTEGER) delete json.minimum;
  if (io === 'output' && json.type === 'integer' && json.maximum === Number.MAX_SAFE_INTEGER)
    delete json.maximum;
}
