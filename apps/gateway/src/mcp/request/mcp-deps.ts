import type { CallDeps } from '../../call-deps.ts';
import type { McpGrant } from '../../grant/verify.ts';
import type { EndedCalls } from '../../limits/ended-calls.ts';
import type { Authorizer } from '../auth/authorize.ts';
import type { Listeners } from '../open/listeners.ts';
import type { OpenRequests } from '../open/open-requests.ts';
import type { LargeMessages } from './messages.ts';
import type { McpPrices } from './price.ts';

/** Only MCP calls need these. */
export type McpParts = {
  readonly bodyWorkers: LargeMessages;
  /** Open streams of MCP's 2024-11-05 transport. */
  readonly listeners: Listeners;
  readonly openRequests: OpenRequests;
  readonly mcpPrices: McpPrices;
  readonly endedCalls: EndedCalls;
};

export type McpDeps = CallDeps<McpGrant> & McpParts & { readonly authorizer: Authorizer };
