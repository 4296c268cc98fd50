import type { ErrorShape, ModelInPath } from '../dialect.ts';
import * as FACTS from '../facts/bedrock.ts';
import { isJsonObject } from '../json.ts';
import { decoded } from '../path.ts';

/** `/model/MODEL/converse`: the model's id, or the id of an inference profile. */
export const BEDROCK_MODEL: ModelInPath = { collections: ['model'], repeatedAt: [], withMethod: false };

/** The model in a path. AWS's own SDKs write the `:` of its version as `%3A`. */
export const bedrockModel = (path: string): string | undefined =>
  decoded(/^\/model\/([^/]+)\//i.exec(path)?.[1] ?? '') || undefined;

/** Whether a model's id, or that of an inference profile, is one of Claude's. */
export const isClaude = (model: string | undefined): boolean => FACTS.CLAUDE.matching.test(model ?? '');

/** AWS's errors are `{"message": …}`. An intermediary's page is not JSON, or has other fields. */
export const isAwsError = (answer: unknown): boolean =>
  isJsonObject(answer) &&
  typeof (answer.message ?? answer.Message) === 'string' &&
  Object.keys(answer).every((field) => ERROR_FIELDS.has(field));

const ERROR_FIELDS: ReadonlySet<string> = new Set(FACTS.ERROR_FIELDS.names);

/**
 * The form of AWS's errors. Its SDKs take the error's name from `code` when no `x-amzn-errortype` header states it
 * (`@smithy/core` 3.38, protocols).
 */
export const awsErrors: ErrorShape = ({ code, message, param, requestId, details }) => ({
  message,
  code,
  request_id: requestId,
  ...(param === null ? {} : { param }),
  ...details,
});
