export type * from '../generated/types.ts';
export { createPresign, each, type PresignOptions } from './create-presign.ts';
export type { CallOptions, ChangeOptions, Input, IssueOptions, OperationId, Presign } from './methods.ts';
export { type ErrorCode, PresignError } from './presign-error.ts';
export {
  anthropicOptions,
  googleOptions,
  type Issued,
  type McpConfig,
  mcpConfig,
  openaiOptions,
} from './sdk-options.ts';
export { MCP_TOOLS } from './tool-settings.ts';
