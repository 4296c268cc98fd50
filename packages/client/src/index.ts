export type * from '../generated/types.ts';
export { createPresign, each, type PresignOptions } from './create-presign.ts';
export { type Dollars, microdollars } from './dollars.ts';
export type { CallOptions, ChangeOptions, Input, IssueOptions, OperationId, Presign } from './methods.ts';
export {
  ApiError,
  AuthenticationError,
  ConflictError,
  ConnectionFailedError,
  type ErrorCode,
  InsufficientQuotaError,
  InvalidRequestError,
  NotFoundError,
  PermissionDeniedError,
  PresignError,
  RateLimitError,
  TimedOutError,
  UnexpectedAnswerError,
} from './presign-error.ts';
export { requestIdOf } from './request-ids.ts';
export type { IssuedUrl } from './sdk-clients.ts';
export {
  anthropicOptions,
  googleOptions,
  type Issued,
  type McpConfig,
  mcpConfig,
  openaiOptions,
} from './sdk-options.ts';
export type { Attempt } from './send-request.ts';
export { MCP_TOOLS } from './tool-settings.ts';
export {
  verifyWebhook,
  type WebhookEvent,
  type WebhookHeaders,
  WebhookVerificationError,
} from './verify-webhook.ts';
