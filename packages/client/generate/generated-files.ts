import { readFileSync } from 'node:fs';
import openapiTS, { astToString } from 'openapi-typescript';
import ts from 'typescript';
import { type Api, OF_A_PATH, type Operation } from './api.ts';
import { operationsFile } from './operations-file.ts';
import { modelsFile } from './python-models.ts';
import { pythonOperationsFile } from './python-operations.ts';

const DOCUMENT = new URL('../../../docs/reference/openapi.json', import.meta.url);

/** The generated files of both clients, by their path from `packages`. They come from docs/reference/openapi.json only. */
export async function generatedFiles(): Promise<ReadonlyMap<string, string>> {
  const api = JSON.parse(readFileSync(DOCUMENT, 'utf8')) as Api;
  return new Map([
    ['client/generated/types.ts', `// ${HEAD}${await typesOf(api)}`],
    ['client/generated/operations.ts', `// ${HEAD}${operationsFile(api)}`],
    ['client-python/src/presign_client/models.py', `# ${HEAD}${modelsFile(api)}`],
    ['client-python/src/presign_client/_operations.py', `# ${HEAD}${pythonOperationsFile(api)}`],
  ]);
}

const HEAD =
  'Generated from docs/reference/openapi.json by `pnpm --filter @presign/client generate`. Do not edit.\n\n';

async function typesOf(api: Api): Promise<string> {
  const nodes = await openapiTS(JSON.stringify(withAnswersAlone(api)), {
    // A request may leave out a field with a default.
    defaultNonNullable: false,
    rootTypes: true,
    rootTypesNoSchemaPrefix: true,
    // The client writes it as ISO 8601. In an answer it is text.
    transform: (schema, { path = '' }) => {
      if ('pattern' in schema && String(schema.pattern).startsWith('^metadata\\.')) return METADATA_KEY;
      return schema.format === 'date-time' && !path.startsWith(ANSWERS) ? STRING_OR_DATE : undefined;
    },
  });
  // `operations.ts` has everything about paths.
  const nameOf = (node: ts.Node) =>
    ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node) ? node.name.text : '';
  return astToString(nodes.filter((node) => !['paths', 'webhooks', '$defs'].includes(nameOf(node))));
}

/** Only queries have times in requests. */
const ANSWERS = '#/components/schemas/';

const STRING_OR_DATE = ts.factory.createUnionTypeNode([
  ts.factory.createKeywordTypeNode(ts.SyntaxKind.StringKeyword),
  ts.factory.createTypeReferenceNode('Date'),
]);

/** Plain text would hide the names of the other dimensions. */
const METADATA_KEY = ts.factory.createTemplateLiteralType(ts.factory.createTemplateHead('metadata.'), [
  ts.factory.createTemplateLiteralTypeSpan(
    ts.factory.createKeywordTypeNode(ts.SyntaxKind.StringKeyword),
    ts.factory.createTemplateTail(''),
  ),
]);

/** Without refusals, which all have the body `ErrorBody`: a type named `Error` would hide that of the language. */
function withAnswersAlone(api: Api): Api {
  const paths = Object.entries(api.paths).map(([path, item]) => {
    const operations = Object.entries(item).filter(([key]) => !OF_A_PATH.has(key));
    return [path, Object.fromEntries(operations.map(([method, each]) => [method, withAnswerAlone(each)]))];
  });
  const { Error: errorBody, ...schemas } = api.components.schemas;
  if (errorBody === undefined) throw new Error('the document has no schema by the name Error');
  return {
    openapi: api.openapi,
    info: api.info,
    paths: Object.fromEntries(paths) as Api['paths'],
    components: { schemas: { ...schemas, ErrorBody: errorBody } },
  };
}

function withAnswerAlone(operation: Operation): Operation {
  const answers = Object.entries(operation.responses).filter(([status]) => status.startsWith('2'));
  if (answers.length === 0) throw new Error(`${operation.operationId} has no answer`);
  const bare = answers.map(([status, { headers: _, ...answer }]) => [status, answer]);
  return { ...operation, responses: Object.fromEntries(bare) as Operation['responses'] };
}
