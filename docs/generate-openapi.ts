// Prints docs/reference/openapi.json: the API's OpenAPI document, as an issuer on its default address serves it.
// Run: npx tsx docs/generate-openapi.ts > docs/reference/openapi.json
import { describeApi } from '../apps/issuer/src/openapi/describe-api.ts';
import { ROUTES } from '../apps/issuer/src/routes.ts';

process.stdout.write(`${JSON.stringify(describeApi(ROUTES, 'http://127.0.0.1:8787'), null, 2)}\n`);
