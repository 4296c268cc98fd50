/** Names of counts and of parts of answers (`facts/counts.ts`); `x.*` is everything in `x`. */
export const USAGE_NAME = /^[A-Za-z]\w*(?:\.\w+)*(?:\.\*)?$/;

/** Names of betas: `effort-2025-11-24`, `assistants=v2`. */
export const BETA_NAME = /^[\w.=-]{1,64}$/;
