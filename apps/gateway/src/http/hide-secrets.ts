/** Shorter texts occur by chance, and keep nothing secret. */
const LEAST_CHARS = 6;

/** Replaces each secret in a text. */
export const hideSecrets = (text: string, secrets: readonly string[]): string =>
  secrets.reduce((rest, each) => (each.length < LEAST_CHARS ? rest : rest.replaceAll(each, '***')), text);
