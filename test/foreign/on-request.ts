const isAsked = (name: string): boolean => process.env[name] === 'true';

/** Clients that run only when they are asked for, because they take minutes or gigabytes. */
export const WITH_RUST = isAsked('TEST_FOREIGN_RUST');
export const WITH_AGENTS = isAsked('TEST_FOREIGN_AGENTS');
/** The newest agents, each installed by itself, and no other client. */
export const NEWEST_AGENTS = process.env.TEST_FOREIGN_AGENTS === 'newest';
/** The newest SDKs in place of those that are pinned. */
export const NEWEST_SDKS = process.env.TEST_FOREIGN_SDKS === 'newest';
/**
 * Java, LlamaIndex, LangChain in JavaScript and the OpenAI Agents SDKs, all of which stand on SDKs that always run; and an S3 server,
 * next to the one that `archive-s3.test.ts` has.
 */
export const WITH_MORE = isAsked('TEST_FOREIGN_MORE');
