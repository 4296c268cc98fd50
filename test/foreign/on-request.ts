const isAsked = (name: string): boolean => process.env[name] === 'true';

/** Clients that run only when they are asked for, because they take minutes or gigabytes. */
export const WITH_RUST = isAsked('TEST_FOREIGN_RUST');
export const WITH_AGENTS = isAsked('TEST_FOREIGN_AGENTS');
/** Java, LlamaIndex, LangChain in JavaScript and the OpenAI Agents SDKs, all of which stand on SDKs that always run. */
export const WITH_MORE = isAsked('TEST_FOREIGN_MORE');
