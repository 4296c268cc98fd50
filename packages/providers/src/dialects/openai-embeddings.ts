import type { Dialect } from '../dialect.ts';
import { MODEL, NO_OUTPUT } from './settings.ts';

/** Embeddings (`openai` SDK, resources/embeddings). */
export const openaiEmbeddings: Dialect = { id: 'openai-embeddings', settings: [MODEL, ...NO_OUTPUT] };
