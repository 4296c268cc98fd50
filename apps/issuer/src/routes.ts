import { getSession } from './get-session.ts';
import { mcpPresign } from './mcp-presign.ts';
import { presign } from './presign.ts';
import { publicKeys } from './public-keys.ts';
import type { Route } from './route.ts';

/** Every route of the API, in the order that its document has. */
export const ROUTES: readonly Route[] = [presign, mcpPresign, getSession, publicKeys];
