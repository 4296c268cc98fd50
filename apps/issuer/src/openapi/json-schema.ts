import { z } from 'zod';

/** A schema as OpenAPI 3.1 has it: JSON Schema 2020-12. */
export type JsonSchema = z.core.JSONSchema.JSONSchema;

/**
 * What a Zod schema says, as JSON Schema. Schemas whose metadata has an `id` are named: they stand in `$defs` and are
 * referred to. Where the metadata has `shownAs`, that schema is converted in place of the one that reads.
 * @param io which side of a schema that transforms: what is read, or what is answered
 */
export function toJsonSchema(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
  const { $schema, $defs, ...own } = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      show(zodSchema, jsonSchema, io);
      dropTruisms(jsonSchema, io);
    },
  });
  const id = z.globalRegistry.get(schema)?.id;
  if (id === undefined || own.$ref !== undefined) return $defs ? { ...own, $defs } : own;
  return { $ref: `#/$defs/${id}`, $defs: { ...$defs, [id]: own } };
}

/** Puts what `shownAs` says in the place of what Zod made of the schema, but for what is told of it. */
function show(schema: z.core.$ZodType, json: JsonSchema, io: 'input' | 'output'): void {
  const { shownAs, id: _id, ...told } = z.globalRegistry.get(schema) ?? {};
  delete json.shownAs;
  if (shownAs instanceof z.ZodType) {
    for (const key of Object.keys(json)) delete json[key];
    Object.assign(json, toJsonSchema(shownAs, io), told);
  }
  // Zod takes them for what a transform gives, and leaves them out of what is read.
  for (const key of ['default', 'examples']) if (key in told) json[key] = told[key];
}

/** What is so of every object in JSON, of every whole number that is written here, and of a format. */
function dropTruisms(json: JsonSchema, io: 'input' | 'output'): void {
  if (JSON.stringify(json.propertyNames) === '{"type":"string"}') delete json.propertyNames;
  if (json.format !== undefined) delete json.pattern;
  if (json.minimum === Number.MIN_SAFE_INTEGER) delete json.minimum;
  if (io === 'output' && json.maximum === Number.MAX_SAFE_INTEGER) delete json.maximum;
}
